/** A simple reader of Messages streams, independent of `src`: joins the message block by block, and reads it at its end. */

import {
  type Content,
  emptyChoice,
  emptyContent,
  eventsOf,
  type UsageContent,
} from '../../tools/conformance/contract/content.ts';
import {
  type Json,
  type JsonObject,
  listOf,
  objectOf,
  parseJson,
  textOf,
} from '../../tools/conformance/contract/json.ts';

interface Message {
  id: string;
  blocks: JsonObject[];
  partialInputs: Map<number, string>;
  closed: Set<number>;
  usage: JsonObject;
  /** There was a `message_delta`. */
  hasTotals: boolean;
  stop: string | null;
  ended: boolean;
  error: string | null;
}

/** Tokens that are billed in addition to the output's usage. */
export interface AnthropicContent extends Content {
  besides: { prompt: number; completion: number };
}

export function readAnthropic(text: string): AnthropicContent {
  const message: Message = {
    id: '',
    blocks: [],
    partialInputs: new Map(),
    closed: new Set(),
    usage: {},
    hasTotals: false,
    stop: null,
    ended: false,
    error: null,
  };
  let isStarted = false;
  for (const { data } of eventsOf(text)) {
    const event = objectOf(parseJson(data));
    isStarted ||= event.type === 'message_start';
    apply(message, event);
    if (message.ended || message.error !== null) break;
  }
  return flatten(message, isStarted);
}

function apply(message: Message, event: JsonObject): void {
  const index = typeof event.index === 'number' ? event.index : -1;
  if (event.type === 'message_start') message.usage = { ...objectOf(objectOf(event.message).usage) };
  if (event.type === 'content_block_start') message.blocks[index] = { ...objectOf(event.content_block) };
  if (event.type === 'content_block_delta') applyDelta(message, index, objectOf(event.delta));
  if (event.type === 'content_block_stop') message.closed.add(index);
  if (event.type === 'message_delta') {
    const usage = Object.entries(objectOf(event.usage)).filter(([, value]) => value !== null);
    message.usage = { ...message.usage, ...Object.fromEntries(usage) };
    message.hasTotals = true;
    message.stop = textOf(objectOf(event.delta).stop_reason);
  }
  if (event.type === 'message_stop') message.ended = true;
  if (event.type === 'error') message.error = textOf(objectOf(event.error).message);
}

function applyDelta(message: Message, index: number, delta: JsonObject): void {
  const block = message.blocks[index] ?? {};
  for (const key of ['text', 'thinking', 'signature']) {
    if (typeof delta[key] === 'string') block[key] = textOf(block[key]) + delta[key];
  }
  if (delta.type !== 'input_json_delta') return;
  message.partialInputs.set(index, (message.partialInputs.get(index) ?? '') + textOf(delta.partial_json));
}

function flatten(message: Message, isStarted: boolean): AnthropicContent {
  const content = emptyContent();
  const choice = emptyChoice();
  if (isStarted) content.choices.set(0, choice);
  for (const [index, block] of message.blocks.entries()) {
    if (block.type === 'text') choice.text += textOf(block.text);
    if (block.type === 'thinking') choice.reasoning += textOf(block.thinking);
    choice.details.push(...detailOf(block, index));
    if (block.type === 'tool_use') choice.toolCalls.push(callOf(message, block, index));
  }
  choice.finish = message.ended ? message.stop : null;
  content.usage = usageOf(message);
  content.usageByFinish = message.ended ? content.usage : null;
  content.done = message.ended;
  content.error = message.ended ? null : (message.error ?? 'ended without message_stop');
  const others = listOf(message.usage.iterations)
    .map(objectOf)
    .filter(({ type }) => type !== 'message');
  const besides = {
    prompt: sum(others.map(promptOf)),
    completion: sum(others.map((one) => count(one.output_tokens))),
  };
  return { ...content, besides };
}

function detailOf(block: JsonObject, index: number): JsonObject[] {
  const isOfText = block.type === 'thinking' && textOf(block.thinking) !== '';
  const maker = { id: `weir1:anthropic:${index}${isOfText ? '-text' : ''}`, format: 'anthropic-claude-v1' };
  if (block.type === 'redacted_thinking') {
    return [{ type: 'reasoning.encrypted', data: textOf(block.data), ...maker, index }];
  }
  const [text, signature] = [textOf(block.thinking), textOf(block.signature)];
  if (block.type !== 'thinking' || text + signature === '') return [];
  const signed = signature === '' ? {} : { signature, ...maker };
  return [{ type: 'reasoning.text', ...(text === '' ? {} : { text }), ...signed, index }];
}

/** An unfinished call may have no arguments yet. A finished one without arguments has an empty object. */
function callOf({ partialInputs, closed }: Message, block: JsonObject, index: number) {
  const partial = partialInputs.get(index) ?? '';
  const given = JSON.stringify(objectOf(block.input));
  const whole = given === '{}' && !closed.has(index) ? '' : given;
  return { id: textOf(block.id), name: textOf(block.name), arguments: partial || whole, extra: null };
}

function usageOf({ usage, hasTotals }: Message): UsageContent | null {
  if (Object.keys(usage).length === 0) return null;
  const details = objectOf(usage.output_tokens_details);
  return {
    prompt: promptOf(usage),
    // The counts in `message_start` are preliminary.
    completion: hasTotals ? count(usage.output_tokens) : null,
    total: null,
    cached: reported(usage.cache_read_input_tokens),
    cacheWrite: reported(usage.cache_creation_input_tokens),
    reasoning: reported(details.thinking_tokens),
  };
}

function promptOf(usage: JsonObject): number {
  return sum(
    [usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens].map(count),
  );
}

function reported(value: Json | undefined): number | null {
  return typeof value === 'number' ? value : null;
}

function count(value: Json | undefined): number {
  return reported(value) ?? 0;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** A client's content with the pieces of each reasoning detail joined. */
export function withJoinedDetails(content: Content): Content {
  for (const choice of content.choices.values()) {
    const byIndex = new Map<string, JsonObject>();
    for (const piece of choice.details) {
      const key = `${textOf(piece.type)} ${JSON.stringify(piece.index)}`;
      const { text = '', index = null, type = null, ...rest } = { ...byIndex.get(key) };
      const joined = textOf(text) + textOf(piece.text);
      const { text: _, index: __, type: ___, ...more } = piece;
      byIndex.set(key, {
        type: type ?? piece.type ?? null,
        ...(joined === '' ? {} : { text: joined }),
        ...rest,
        ...more,
        index: index ?? piece.index ?? null,
      });
    }
    choice.details = [...byIndex.values()];
  }
  return content;
}
