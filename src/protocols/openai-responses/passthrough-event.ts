/** What of an upstream's own Responses events is another for the client: the model's name, and the reasoning that a policy strips (C2, C6). */
import {
  isObject,
  type JsonObject,
  objectOf,
  parseJsonExactly,
  readArray,
  readCount,
  readText,
} from '../../shared/json.ts';
import type { PassthroughOptions } from '../shared/client-protocol.ts';

type Options = Pick<PassthroughOptions, 'provider' | 'reasoning'>;

/** Types of the parts of reasoning: `content_part` events have them at DeepSeek (recorded 2026-08, shared/streams/deepseek--responses-*). */
const REASONING_PARTS: readonly unknown[] = ['reasoning_text', 'summary_text'];

/** Whether an event has nothing but a text of reasoning, or announces one. */
export function isReasoningText({ type, part }: JsonObject): boolean {
  return (
    (readText(type) ?? '').startsWith('response.reasoning') || REASONING_PARTS.includes(objectOf(part).type)
  );
}

/**
 * @param data the event's, as it came
 * @param dropped events that the client did not get: its numbers go on without a gap (I4)
 */
export function writeEvent(data: string, event: JsonObject, dropped: number, options: Options): string {
  const isStripped = options.reasoning === 'strip' && objectOf(event.item).type === 'reasoning';
  if (!isObject(event.response) && !isStripped && dropped === 0) return data;
  const exact = objectOf(parseJsonExactly(data));
  const { response, item } = exact;
  const number = readCount(exact.sequence_number);
  return JSON.stringify({
    ...exact,
    ...(isObject(response) ? { response: writeResponse(response, options) } : {}),
    ...(isStripped && isObject(item) ? { item: withoutText(item) } : {}),
    ...(number === undefined ? {} : { sequence_number: number - dropped }),
  });
}

/** The model under the name by which it is asked for, as on every other route. */
export function writeResponse(response: JsonObject, { provider, reasoning }: Options): JsonObject {
  const model = readText(response.model);
  const named = model === undefined ? response : { ...response, model: `${provider}/${model}` };
  if (reasoning === 'pass' || !Array.isArray(response.output)) return named;
  const output = response.output.map((item: unknown) => (isObject(item) ? withoutText(item) : item));
  return { ...named, output };
}

/** What its provider wants back of a reasoning item is in its id and in `encrypted_content`. */
function withoutText(item: JsonObject): JsonObject {
  if (item.type !== 'reasoning') return item;
  const content = readArray(item.content).length === 0 ? {} : { content: [] };
  return { ...item, summary: [], ...content };
}
