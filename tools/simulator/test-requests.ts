/** Sends the requests of the simulator's own tests and reads its streams. */
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import { basePaths } from './scenes.ts';
import type { Simulator } from './server.ts';

export const QUESTION = [{ role: 'user', content: 'What does a weir do?' }];

export const paths = {
  deepseek: `${basePaths.deepseek}/chat/completions`,
  beta: `${basePaths.deepseek}/beta/chat/completions`,
  deepseekFim: `${basePaths.deepseek}/beta/completions`,
  mistral: `${basePaths.mistral}/chat/completions`,
  agents: `${basePaths.mistral}/agents/completions`,
  codestral: `${basePaths.codestral}/fim/completions`,
  opentoken: `${basePaths.opentoken}/chat/completions`,
  xerotier: `${basePaths.xerotier}/chat/completions`,
  openai: `${basePaths.openai}/chat/completions`,
  responses: `${basePaths.openai}/responses`,
  legacy: `${basePaths.openai}/completions`,
  anthropic: `${basePaths.anthropic}/v1/messages`,
  compatible: `${basePaths.compatible}/chat/completions`,
  groq: `${basePaths.groq}/chat/completions`,
  cerebras: `${basePaths.cerebras}/chat/completions`,
  openrouter: `${basePaths.openrouter}/chat/completions`,
  'gemini-compatible': `${basePaths['gemini-compatible']}/chat/completions`,
  xai: `${basePaths.xai}/chat/completions`,
  moonshot: `${basePaths.moonshot}/chat/completions`,
  zai: `${basePaths.zai}/chat/completions`,
};
export const WEATHER = {
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};
export const INCLUDE_USAGE = { stream_options: { include_usage: true } };

/** A chat body for a model, with a prompt of five words. */
export function chatBody(model: string, more: JsonObject = {}): JsonObject {
  return { model, messages: QUESTION, ...more };
}

export interface RequestOptions {
  readonly path: string;
  readonly body: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export function sendRequest(
  simulator: Simulator,
  { path, body, headers, signal }: RequestOptions,
): Promise<Response> {
  return fetch(simulator.url + path, {
    method: 'POST',
    headers: { authorization: 'Bearer sim-test', 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    redirect: 'manual',
    signal: signal ?? null,
  });
}

export interface Received {
  readonly text: string;
  readonly comments: readonly string[];
  /** The data of each event that is a JSON object. */
  readonly chunks: readonly JsonObject[];
  readonly dones: number;
}

export function readStream(text: string): Received {
  const events = text.split('\n\n').filter(Boolean);
  const data = events
    .map((event) => event.replace(/^event: .*\n/, ''))
    .filter((event) => event.startsWith('data: '));
  return {
    text,
    comments: events.filter((event) => event.startsWith(': ')),
    chunks: data.map((event) => decodeObject(event.slice(6))).filter((chunk) => chunk !== undefined),
    dones: data.filter((event) => event === 'data: [DONE]').length,
  };
}

export async function stream(simulator: Simulator, path: string, body: JsonObject): Promise<Received> {
  const response = await sendRequest(simulator, { path, body: { stream: true, ...body } });
  return readStream(await response.text());
}

export function choicesOf(received: Received): JsonObject[] {
  return received.chunks.flatMap((chunk) => objectsOf(chunk.choices));
}

export function deltasOf(received: Received): JsonObject[] {
  return choicesOf(received).map((choice) => objectOf(choice.delta));
}

export function finishesOf(received: Received): string[] {
  return choicesOf(received)
    .map((choice) => textOf(choice.finish_reason))
    .filter(Boolean);
}

export function textIn(received: Received): string {
  return deltasOf(received)
    .map((delta) => textOf(delta.content))
    .join('');
}

/** The usage object of a stream. Throws if there is not exactly one. */
export function usageOf(received: Received): JsonObject {
  const usages = received.chunks.filter((chunk) => typeof chunk.usage === 'object' && chunk.usage !== null);
  if (usages.length !== 1) throw new Error(`${usages.length} chunks have usage`);
  return objectOf(usages[0]?.usage);
}
