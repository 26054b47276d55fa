/** Tool loops of five steps for the tests of Gemini's clients, written with Google's SDK. */
import {
  type Content,
  type GenerateContentConfig,
  GoogleGenAI,
  type Part,
  ThinkingLevel,
} from '@google/genai';
import { STEPS, type Thoughtful } from './agent-loops.ts';

const TASK = `steps:${STEPS} How high is the river, and what will it do?`;
const CITY = { type: 'object', properties: { city: { type: 'string' } } };
const TOOLS = [
  { functionDeclarations: ['gauge', 'forecast'].map((name) => ({ name, parametersJsonSchema: CITY })) },
];
const THOUGHTLESS = /gpt-4o|codestral/;

export interface LoopResult extends Thoughtful {
  /** The text after the last step. */
  readonly text: string;
  /** The number of tool results. */
  readonly calls: number;
}

/** Google's own models refuse one of two ways to set thinking, and think without. */
function configFor(model: string): GenerateContentConfig {
  if (THOUGHTLESS.test(model)) return { tools: TOOLS };
  const level = model.startsWith('gemini/') ? {} : { thinkingLevel: ThinkingLevel.HIGH };
  return { tools: TOOLS, thinkingConfig: { includeThoughts: true, ...level } };
}

/** What clients send back of a step, by what they do with it. */
export const KEEPERS: Readonly<Record<string, (parts: Part[]) => object[]>> = {
  'each part as it came': (parts) => parts,
  'no thoughts, as Gemini CLI': (parts) => parts.filter(({ thought }) => thought !== true),
  'Weir’s signatures on parts of their own, before the others': (parts) => {
    const isWeirs = (signature = '') => atob(signature).startsWith('weir1:');
    return [
      ...parts.flatMap(({ thoughtSignature: signature = '' }) =>
        isWeirs(signature) ? [{ text: '', thoughtSignature: signature }] : [],
      ),
      ...parts.map(({ thoughtSignature, ...part }) =>
        isWeirs(thoughtSignature) ? part : { ...part, thoughtSignature },
      ),
    ];
  },
  'calls alone': (parts) => parts.filter(({ functionCall }) => functionCall !== undefined),
};

/**
 * A manual loop: each content of the model goes back.
 * @param next one model, or that of each step in turn
 * @param keep what is sent back of a step
 */
export async function runByHand(
  baseUrl: string,
  next: string | ((step: number) => string),
  isStreamed: boolean,
  keep: (parts: Part[]) => object[] = (parts) => parts,
): Promise<LoopResult> {
  const { models } = new GoogleGenAI({ apiKey: 'unused', httpOptions: { baseUrl } });
  const contents: Content[] = [{ role: 'user', parts: [{ text: TASK }] }];
  let calls = 0;
  let thoughts = 0;
  for (let step = 0; step <= STEPS + 2; step++) {
    const model = typeof next === 'string' ? next : next(step);
    const config = configFor(model);
    const parts: Part[] = [];
    const finishes: string[] = [];
    const responses = isStreamed
      ? await models.generateContentStream({ model, contents, config })
      : [await models.generateContent({ model, contents, config })];
    for await (const { candidates: [candidate] = [] } of responses) {
      parts.push(...(candidate?.content?.parts ?? []));
      if (candidate?.finishReason !== undefined) finishes.push(candidate.finishReason);
    }
    if (finishes.join() !== 'STOP') throw new Error(`the finishes are ${finishes.join()}`);
    const functionCalls = parts.flatMap(({ functionCall }) => functionCall ?? []);
    if (functionCalls.length === 0) {
      const text = parts.map(({ text = '', thought }) => (thought === true ? '' : text)).join('');
      return { text, calls, thoughts };
    }
    if (parts.some(({ thought }) => thought === true)) thoughts++;
    const kept = keep(parts);
    contents.push({ role: 'model', parts: kept });
    calls += functionCalls.length;
    contents.push({
      role: 'user',
      parts: functionCalls.map(({ id, name }) => ({
        functionResponse: {
          ...(id === undefined ? {} : { id }),
          ...(name && { name }),
          response: { output: '312 cm' },
        },
      })),
    });
  }
  throw new Error('The loop did not end');
}
