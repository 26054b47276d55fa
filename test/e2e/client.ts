/** Builds requests of the end-to-end tests and reads the responses. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { ADMIN_TOKEN, type Gateway } from './gateway.ts';

/** Two words, which are two prompt tokens at the simulator. */
export const MESSAGES = [{ role: 'user', content: 'Hello there' }];

export function chat(model: string, more: JsonObject = {}): JsonObject {
  return { model, messages: MESSAGES, ...more };
}

export function streamedChat(model: string, more: JsonObject = {}): JsonObject {
  return chat(model, { stream: true, ...more });
}

export const INCLUDE_USAGE = { stream_options: { include_usage: true } };

/** The last frame of every stream that began (F2). */
export const DONE = 'data: [DONE]';

/** A stream's frames without the two line feeds at their ends. Throws if the last frame lacks them. */
export function framesOf(text: string): string[] {
  const frames = text.split('\n\n');
  if (frames.pop() !== '') throw new Error(`The stream ends within a frame: ${text.slice(-200)}`);
  return frames;
}

/** The JSON objects of a stream's data frames. */
function chunksOf(text: string): JsonObject[] {
  const data = framesOf(text).filter((frame) => frame.startsWith('data: {'));
  return data.map((frame) => decodeObject(frame.slice('data: '.length)) ?? {});
}

export function contentOf(text: string): string {
  const choices = chunksOf(text).flatMap((chunk) => objectsOf(chunk.choices));
  return choices.map((choice) => textOf(objectOf(choice.delta).content) + textOf(choice.text)).join('');
}

export function finishesOf(text: string): string[] {
  const choices = chunksOf(text).flatMap((chunk) => objectsOf(chunk.choices));
  return choices.map((choice) => textOf(choice.finish_reason)).filter(Boolean);
}

export async function jsonOf(response: Response): Promise<JsonObject> {
  const text = await response.text();
  const json = decodeObject(text);
  if (json === undefined) throw new Error(`The body is not a JSON object: ${text.slice(0, 200)}`);
  return json;
}

/** A request's complete record from the API. */
export async function wholeRecord(gateway: Gateway, answered: Response): Promise<JsonObject> {
  const { request_id } = await gateway.record(answered);
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  return jsonOf(await gateway.fetch(`/v1/usage/records/${request_id}`, { headers }));
}

/** The status and the error object of an error response (E1). */
export async function errorOf(response: Response): Promise<{ status: number; error: JsonObject }> {
  return { status: response.status, error: objectOf((await jsonOf(response)).error) };
}

/** A local port without a listener. */
export async function findClosedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('The server has no port');
  return address.port;
}
