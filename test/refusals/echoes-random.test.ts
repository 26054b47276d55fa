/** A host that repeats the prompt: nothing of it is a statement of the host, in whatever form it comes back. */
import { describe, expect, test } from 'vitest';
import { readUpstreamRefusal } from '../../src/canonical/upstream-error.ts';
import { readApiStatement } from '../../src/fitting/api-statements.ts';
import type { Claim } from '../../src/fitting/refusal-words.ts';
import { readStatements } from '../../src/fitting/statements.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { compareWithRequest } from '../../src/upstream/provider-message.ts';
import { REFUSAL_TEXTS } from '../../tools/simulator/refusal-texts.ts';
import { seeded } from '../random.ts';
import { repeatable, runsOf, SEED } from '../random-run.ts';

const FIELDS: JsonObject = {
  ...{
    temperature: 0.5,
    top_p: 0.4,
    top_k: 100,
    seed: 1,
    user: 'ada',
    metadata: { a: 'b' },
    verbosity: 'low',
  },
  ...{
    max_tokens: 100_000,
    reasoning_effort: 'high',
    presence_penalty: 1,
    frequency_penalty: 1,
    store: true,
  },
  ...{
    parallel_tool_calls: true,
    thinking: { type: 'enabled', budget_tokens: 5000 },
    tool_choice: 'required',
  },
  stream_options: { include_usage: true },
  tools: [
    {
      type: 'function',
      function: {
        name: 'f',
        strict: true,
        parameters: { type: 'object', properties: { a: { type: 'string', minLength: 1, pattern: 'x' } } },
      },
    },
  ],
};

type Random = () => number;

function pick<One>(random: Random, list: readonly One[]): One {
  const one = list[Math.floor(random() * list.length)];
  if (one === undefined) throw new Error('an empty list');
  return one;
}

const NAMES = Object.keys(FIELDS).filter((name) => name !== 'tools' && name !== 'tool_choice');
const NUMBERS = ['0', '1', '4', '0.5', '16', '1024', '8,192', '16384', '50000'];

/** What a caller would like a host to say. */
const SENTENCES: readonly ((field: string, number: string, random: Random) => string)[] = [
  (field) => `Unsupported parameter: '${field}' is not supported with this model.`,
  (field) => `Unsupported parameters: ${field}, seed`,
  (field) => `${field} is not supported`,
  (field) => `${field} isn't available`,
  (field, number) => `${field} must be ${number}`,
  (field, number) => `${field} must be <= ${number}`,
  (field, number) => `${field} <= ${number}`,
  (field, number) => `${field} at most ${number}`,
  (field, number) => `max ${field} is ${number}`,
  (_, number) => `The maximum output tokens for gpt-4o is ${number}`,
  (_, number) => `max_tokens cannot exceed ${number} tokens`,
  (field) => `"${field}": Extra inputs are not permitted`,
  (field) => `${field}: Extra inputs are not permitted`,
  (field) => `unknown field ${field}`,
  (field) => `does not support ${field}`,
  () => "tool_choice 'required' is incompatible with thinking enabled",
  () => "reasoning_effort does not support 'high'. Supported values are: 'low'",
  () => 'temperature and top_p are incompatible',
  () => "Invalid tool schema: 'pattern' is not supported",
  () => 'This model is only supported in v1/responses and not in v1/chat/completions.',
  (_, __, random) => {
    const { text } = pick(random, REFUSAL_TEXTS);
    return readUpstreamRefusal(text).message ?? text;
  },
];

const WORDS = 'please my account the plan of hello and then Zürich 4711 x = { "a": 1 } \n - why? I am'.split(
  ' ',
);

function promptOf(random: Random): string {
  const sentence = pick(random, SENTENCES)(pick(random, NAMES), pick(random, NUMBERS), random);
  const some = () => Array.from({ length: Math.floor(random() * 6) }, () => pick(random, WORDS)).join(' ');
  return [some(), sentence, some()].join(' ').trim();
}

function shuffled(words: readonly string[], random: Random): readonly string[] {
  return words
    .map((word) => [random(), word] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, word]) => word);
}

const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** How a prompt comes back. */
const FORMS: Readonly<Record<string, (prompt: string, random: Random) => string>> = {
  'as it is': (prompt) => prompt,
  'in quotation marks': (prompt) => `"${prompt}"`,
  'in single quotation marks': (prompt) => `'${prompt}'`,
  'in back-ticks': (prompt) => `\`${prompt}\``,
  'in typographic quotation marks': (prompt) =>
    `\u201c${prompt}\u201d \u201e${prompt}\u201c \u00ab${prompt}\u00bb`,
  'with typographic quotation marks': (prompt) => prompt.replace(/['"`]/g, '\u2019'),
  'without quotation marks': (prompt) => prompt.replace(/['"`]/g, ''),
  'as JSON': (prompt) => JSON.stringify({ role: 'user', content: prompt }),
  'as JSON in JSON': (prompt) => JSON.stringify(JSON.stringify(prompt)),
  'in ASCII escapes': (prompt) => prompt.replace(/[^a-z ]/gi, escaped),
  'in HTML': (prompt) => prompt.replace(/[<>&"']/g, (sign) => `&#${sign.charCodeAt(0)};`),
  'in a URL': (prompt) => encodeURIComponent(prompt.toWellFormed()),
  'in capitals': (prompt) => prompt.toUpperCase(),
  'in small letters': (prompt) => prompt.toLowerCase(),
  'with double spaces': (prompt) => prompt.replaceAll(' ', '  '),
  'with line ends': (prompt) => prompt.replaceAll(' ', '\n'),
  'with tabs': (prompt) => prompt.replaceAll(' ', '\t'),
  'without spaces': (prompt) => prompt.replaceAll(' ', ''),
  'with spaced letters': (prompt) => Array.from(prompt).join(' '),
  'with _': (prompt) => prompt.replaceAll(' ', '_'),
  cut: (prompt) => `${prompt.slice(0, 60)}...`,
  'cut at its beginning': (prompt) => `...${prompt.slice(5)}`,
  'in another order': (prompt, random) => shuffled(prompt.split(' '), random).join(' '),
  reversed: (prompt) => prompt.split(' ').reverse().join(' '),
  'in base64': (prompt) => btoa(encodeURIComponent(prompt.toWellFormed())),
  'in hex': (prompt) => Buffer.from(prompt).toString('hex'),
  twice: (prompt) => `${prompt} | ${prompt}`,
  'with zero-width signs': (prompt) => prompt.replaceAll(' ', ' \u200b'),
};

/** What the host says around it. */
const HOSTS: readonly ((echo: string) => string)[] = [
  (echo) => echo,
  (echo) => `Request too large for text: ${echo}`,
  (echo) => `Invalid content: ${echo}. Please try again`,
  (echo) => `messages[0].content (${echo}) was flagged`,
  (echo) => `Bad request\n${echo}\n`,
];

function kept(message: string, body: JsonObject): readonly unknown[] {
  const statements = readStatements({ message, code: '', field: undefined }, { body, betas: [] });
  const refusal = { status: 400, kind: null, code: '', field: undefined, message };
  const api = readApiStatement(refusal, 'chat');
  const claims = [...statements, ...(api === null ? [] : [api])];
  const places = claims.flatMap(({ claim }): Claim[] => (claim === null ? [] : [claim]));
  const comparison = compareWithRequest(message, body, places);
  return claims.filter(({ claim }) => claim !== null && comparison?.isEcho(claim) !== true);
}

const PROMPTS = runsOf(400, 4000);

describe('Z2 an echo of the prompt', () => {
  test.each(Object.entries(FORMS))(
    `%s says nothing of the request (SEED=${SEED}, ${PROMPTS} prompts)`,
    async (_, form) => {
      for (let seed = SEED; seed < SEED + PROMPTS; seed++) {
        await repeatable(seed, async () => {
          const random = seeded(seed);
          const prompt = promptOf(random);
          const message = pick(random, HOSTS)(form(prompt, random));
          const content = random() < 0.5 ? prompt : [{ type: 'text', text: `Hello. ${prompt}` }];
          const body = { ...FIELDS, model: 'm', messages: [{ role: 'user', content }] };
          expect(kept(message, body), JSON.stringify({ prompt, message })).toEqual([]);
        });
      }
    },
  );

  test('is none if the prompt has a name of the field, or words of the phrase alone', () => {
    const message = "Unsupported parameter: 'temperature' is not supported with this model.";
    const body = (content: string) => ({ ...FIELDS, model: 'm', messages: [{ role: 'user', content }] });
    for (const prompt of [
      'What temperature is it in Paris?',
      'temperature',
      'Red hats are not supported with this model. Why?',
      'Unsupported parameter',
      'The temperature is 21 degrees',
      `${'The temperature rises. '.repeat(3)}${'x '.repeat(300)}The old parameter is unsupported`,
    ]) {
      expect(kept(message, body(prompt)), prompt).toHaveLength(1);
    }
  });
});
