/** How the simulator's own tests ask it, and how they read what it streams. */
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
  legacy: `${basePaths.openai}/completions`,
  compatible: `${basePaths.compatible}/chat/completions`,
};
export const WEATHER = {
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};
export const INCLUDE_USAGE = { stream_options: { include_usage: true } };

/** A chat body for a model, five words long. */
export function asking(model: string, more: JsonObject = {}): JsonObject {
  return { model, messages: QUESTION, ...more };
}

export interface Asked {
  readonly path: string;
  readonly body: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export function ask(simulator: Simulator, { path, body, headers, signal }: Asked): Promise<Response> {
  return fetch(simulator.url + path, {
    method: 'POST',
    headers: { authorization: 'Bearer sim-test', 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    redirect: 'manual',
    signal: signal ?? null,
  });
}

export interface Heard {
  readonly text: string;
  readonly comments: readonly string[];
  /** The data of each event that is a JSON object. */
  readonly chunks: readonly JsonObject[];
  readonly dones: number;
}

export function hear(text: string): Heard {
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

export async function stream(simulator: Simulator, path: string, body: JsonObject): Promise<Heard> {
  const response = await ask(simulator, { path, body: { stream: true, ...body } });
  return hear(await response.text());
}

export function choicesOf(heard: Heard): JsonObject[] {
  return heard.chunks.flatMap((chunk) => objectsOf(chunk.choices));
}

export function deltasOf(heard: Heard): JsonObject[] {
  return choicesOf(heard).map((choice) => objectOf(choice.delta));
}

export function finishesOf(heard: Heard): string[] {
  return choicesOf(heard)
    .map((choice) => textOf(choice.finish_reason))
    .filter(Boolean);
}

export function textIn(heard: Heard): string {
  return deltasOf(heard)
    .map((delta) => textOf(delta.content))
    .join('');
}

/** The one usage that a stream told; a second one is a mistake of the scene. */
export function usageOf(heard: Heard): JsonObject {
  const told = heard.chunks.filter((chunk) => typeof chunk.usage === 'object' && chunk.usage !== null);
  if (told.length !== 1) throw new Error(`${told.length} chunks tell usage`);
  return objectOf(told[0]?.usage);
}
