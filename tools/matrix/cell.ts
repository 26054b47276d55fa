/**
 * One cell of the matrix: a client protocol with a model, streaming and non-streaming, against a simulator that rejects
 * what the provider rejects.
 */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { CALLS, runByHand as runChat, STEPS, type Thoughtful } from '../../test/e2e/agent-loops.ts';
import { countCalls } from '../../test/e2e/count-calls.ts';
import type { Gateway } from '../../test/e2e/gateway.ts';
import { runByHand as runGemini } from '../../test/e2e/gemini-loops.ts';
import { runByHand as runMessages } from '../../test/e2e/messages-loops.ts';
import { runByHand as runResponses } from '../../test/e2e/responses/loops.ts';
import type { RecordedRequest } from '../simulator/recorded-request.ts';

/** Runs the loop of five steps with the SDK of a protocol. */
type Loop = (
  gatewayUrl: string,
  model: string,
  isStreamed: boolean,
) => Promise<Thoughtful & { readonly text: string; readonly calls: number }>;

const LOOPS = {
  chat: (url, model, isStreamed) => runChat(`${url}/v1`, model, isStreamed),
  messages: (url, model, isStreamed) =>
    runMessages(new Anthropic({ baseURL: url, apiKey: 'unused', maxRetries: 0 }), model, isStreamed),
  responses: (url, model, isStreamed) => runResponses(`${url}/v1`, model, isStreamed),
  gemini: (url, model, isStreamed) => runGemini(url, model, isStreamed),
} as const satisfies Readonly<Record<string, Loop>>;

export type LoopProtocol = keyof typeof LOOPS;

/** Recognises passthrough by the end of the upstream path. */
const PASSTHROUGH_PATHS: readonly (readonly [client: LoopProtocol, path: RegExp])[] = [
  ['messages', /\/v1\/messages$|:(?:r|streamR)awPredict$/],
  ['responses', /\/responses$/],
  ['gemini', /:(?:g|streamG)enerateContent(?:\?|$)/],
];

/** The reasoning signatures that a provider requires in later turns, under each of their names. */
const SIGNATURE = /"(?:signature|thought_signature|thoughtSignature|encrypted_content|data)":"[^"]/;
/** Google's documented placeholder for a lost signature. */
const PLACEHOLDER = 'skip_thought_signature_validator';

/** @returns the summary of both loops. Throws if a loop or one of its requests fails, or if the two summaries differ. */
export async function loopCell(gateway: Gateway, protocol: LoopProtocol, model: string): Promise<string> {
  const streamed = await runLoop(gateway, protocol, model, true);
  const whole = await runLoop(gateway, protocol, model, false);
  if (streamed !== whole) throw new Error(`streaming gives "${streamed}", non-streaming gives "${whole}"`);
  return streamed;
}

async function runLoop(
  gateway: Gateway,
  protocol: LoopProtocol,
  model: string,
  isStreamed: boolean,
): Promise<string> {
  const before = gateway.simulator.requests.length;
  const { text, calls, thoughts } = await LOOPS[protocol](gateway.url, model, isStreamed);
  const requests = gateway.simulator.requests.slice(before);
  const last = requests.at(-1);
  if (last === undefined || text === '' || calls !== CALLS || requests.length !== STEPS + 1) {
    throw new Error(`${requests.length} requests, ${calls} calls and "${text}"`);
  }
  const sent = countCalls(last.body ?? {});
  if (sent.calls !== CALLS || sent.results !== CALLS) {
    throw new Error(`${sent.calls} calls and ${sent.results} results were sent back`);
  }
  if (last.text.includes(PLACEHOLDER)) throw new Error('A signature was lost');
  if (thoughts !== 0 && thoughts !== STEPS)
    throw new Error(`The model reasoned in ${thoughts} of ${STEPS} steps`);
  return summaryOf(protocol, last, thoughts > 0);
}

function summaryOf(protocol: LoopProtocol, { path, text }: RecordedRequest, thinks: boolean): string {
  const hasLane = PASSTHROUGH_PATHS.some(([client, end]) => client === protocol && end.test(path));
  const words = [thinks ? 'thinking' : 'tools', ...(SIGNATURE.test(text) ? ['signed'] : [])];
  return `${hasLane ? 'passthrough: ' : ''}${words.join(', ')}`;
}

/** Legacy completions have no tools, so the cell is one streaming and one non-streaming request. */
export async function completionCell(gateway: Gateway, model: string | null): Promise<string> {
  if (model === null) return '–';
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'unused', maxRetries: 0 });
  const body = { model, prompt: 'Below the weir', max_tokens: 64 };
  let streamed = '';
  for await (const { choices } of await client.completions.create({ ...body, stream: true })) {
    streamed += choices[0]?.text ?? '';
  }
  const whole = (await client.completions.create(body)).choices[0]?.text;
  if (streamed === '' || streamed !== whole) throw new Error(`streamed "${streamed}", whole "${whole}"`);
  return 'text';
}
