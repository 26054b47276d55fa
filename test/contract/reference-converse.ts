/** A simple reader of Converse's streams, over the messages that AWS's codec reads, independent of `src`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EventStreamCodec } from '@smithy/eventstream-codec';
import { type Content, emptyChoice, emptyContent } from '../../tools/conformance/contract/content.ts';
import { type JsonObject, objectOf, parseJson, textOf } from '../../tools/conformance/contract/json.ts';

const FOLDER = fileURLToPath(new URL('../../../shared/streams/bedrock/', import.meta.url).href);

/** The end of a test's name, so that a run without the recordings reports what it skipped. */
export const converseNote = existsSync(FOLDER) ? '' : ' (skipped: ../shared/streams is not here)';

/** The recorded streams of Converse, without the broken one. */
export function converseRecordings(): { readonly name: string; readonly bytes: Uint8Array }[] {
  if (converseNote !== '') return [];
  return readdirSync(FOLDER)
    .filter((name) => /^bedrock--.*\.bin$/.test(name) && !name.includes('broken'))
    .map((name) => ({ name, bytes: new Uint8Array(readFileSync(FOLDER + name)) }));
}

const decoder = new TextDecoder();
const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === 'string' ? bytes : decoder.decode(bytes)),
  (text) => new TextEncoder().encode(text),
);

export interface ConverseMessage {
  /** Of the message in the stream. */
  readonly bytes: Uint8Array;
  readonly type: string;
  readonly payload: JsonObject;
}

/** The whole messages of a stream. */
export function converseMessages(bytes: Uint8Array): ConverseMessage[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const messages: ConverseMessage[] = [];
  for (let at = 0; at + 4 <= bytes.length; ) {
    const length = view.getUint32(at);
    if (at + length > bytes.length) break;
    const own = bytes.subarray(at, at + length);
    const { headers, body } = codec.decode(own);
    const type = String(headers[':event-type']?.value ?? headers[':exception-type']?.value ?? '');
    messages.push({ bytes: own, type, payload: objectOf(parseJson(decoder.decode(body))) });
    at += length;
  }
  return messages;
}

interface Block {
  text: string;
  reasoning: string;
  signature: string;
  redacted: string;
  call: { id: string; name: string } | null;
  input: string;
  isOfServer: boolean;
  isClosed: boolean;
}

const WORDS = new Map([
  ['max_tokens', 'length'],
  ['tool_use', 'tool_calls'],
  ['guardrail_intervened', 'content_filter'],
  ['content_filtered', 'content_filter'],
]);

/** @param provider the id of the provider that signatures are tagged with */
export function readConverse(messages: readonly Omit<ConverseMessage, 'bytes'>[], provider: string): Content {
  const content = emptyContent();
  const blocks = new Map<number, Block>();
  let hasStart = false;
  for (const { type, payload } of messages) {
    const index = Number(payload.contentBlockIndex ?? -1);
    const block = blocks.get(index) ?? {
      ...{ text: '', reasoning: '', signature: '', redacted: '', call: null, input: '' },
      ...{ isOfServer: false, isClosed: false },
    };
    if (index >= 0) blocks.set(index, block);
    const { toolUse, toolResult } = objectOf(payload.start);
    const delta = objectOf(payload.delta);
    const thought = objectOf(delta.reasoningContent);
    hasStart ||= type === 'messageStart';
    block.isOfServer ||= toolResult !== undefined || objectOf(toolUse).type === 'server_tool_use';
    if (toolUse !== undefined && !block.isOfServer)
      block.call = { id: textOf(objectOf(toolUse).toolUseId), name: textOf(objectOf(toolUse).name) };
    block.text += textOf(delta.text);
    block.reasoning += textOf(thought.text);
    block.signature += textOf(thought.signature);
    block.redacted += textOf(thought.redactedContent);
    block.input += textOf(objectOf(delta.toolUse).input);
    block.isClosed ||= type === 'contentBlockStop';
    if (type === 'messageStop') content.usageByFinish = null;
    if (type === 'messageStop') content.done = true;
    if (type === 'messageStop') {
      const word = textOf(payload.stopReason);
      const choice = content.choices.get(0) ?? emptyChoice();
      choice.finish = WORDS.get(word) ?? word;
      content.choices.set(0, choice);
    }
    if (type === 'metadata') content.usage = usageOf(objectOf(payload.usage));
  }
  const choice = content.choices.get(0) ?? emptyChoice();
  if (hasStart) content.choices.set(0, choice);
  for (const [index, block] of blocks) {
    choice.text += block.isOfServer ? '' : block.text;
    choice.reasoning += block.reasoning;
    const tag = {
      id: `weir1:${provider}:${index}${block.reasoning === '' ? '' : '-text'}`,
      format: 'anthropic-claude-v1',
    };
    if (block.reasoning + block.signature !== '')
      choice.details.push({
        type: 'reasoning.text',
        ...(block.reasoning === '' ? {} : { text: block.reasoning }),
        ...(block.signature === '' ? {} : { signature: block.signature, ...tag }),
        index,
      });
    if (block.redacted !== '') {
      const data = Buffer.from(block.redacted, 'base64').toString();
      choice.details.push({ type: 'reasoning.encrypted', data, ...tag, index });
    }
    if (block.call !== null)
      choice.toolCalls.push({
        ...block.call,
        arguments: block.input || (block.isClosed || content.done ? '{}' : ''),
        extra: null,
      });
  }
  if (!content.done) content.error = 'ended without messageStop';
  content.usageByFinish = content.done ? content.usage : null;
  return content;
}

function usageOf(usage: JsonObject): Content['usage'] {
  const count = (name: string) => (typeof usage[name] === 'number' ? usage[name] : null);
  const [cached, cacheWrite] = [count('cacheReadInputTokens'), count('cacheWriteInputTokens')];
  return {
    prompt: Number(usage.inputTokens) + (cached ?? 0) + (cacheWrite ?? 0),
    completion: count('outputTokens'),
    total: count('totalTokens'),
    cached,
    cacheWrite,
    reasoning: null,
  };
}

/** The pages that the stream cites, in order and once each. */
export function citedIn(messages: readonly ConverseMessage[]): string[] {
  const urls = messages.flatMap(({ payload }) => {
    const { location } = objectOf(objectOf(payload.delta).citation);
    return textOf(objectOf(objectOf(location).web).url) || [];
  });
  return [...new Set(urls)];
}
