/** A simple reader of a client's Messages stream: the visible output, and what the next turn sends back. */

import { eventsOf } from '../../tools/conformance/contract/content.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  parseJson,
  textOf,
} from '../../tools/conformance/contract/json.ts';

export interface MessageContent {
  text: string;
  reasoning: string;
  /** In order, with the upstream's id, and the arguments as written. */
  readonly calls: { readonly id: string; readonly name: string; arguments: string }[];
  /** Decoded tagged tokens: of thinking blocks, and separate ones. */
  readonly tokens: JsonObject[];
  stop: string | null;
  usage: JsonObject | null;
  error: JsonObject | null;
}

export function readMessage(stream: string): MessageContent {
  const content: MessageContent = {
    text: '',
    reasoning: '',
    calls: [],
    tokens: [],
    stop: null,
    usage: null,
    error: null,
  };
  for (const { data } of eventsOf(stream)) readEvent(content, objectOf(parseJson(data)));
  return content;
}

function readEvent(content: MessageContent, event: JsonObject): void {
  const { text, thinking, partial_json, signature, stop_reason } = objectOf(event.delta);
  const { type, id, name, data } = objectOf(event.content_block);
  content.text += textOf(text);
  content.reasoning += textOf(thinking);
  const call = content.calls.at(-1);
  if (call !== undefined) call.arguments += textOf(partial_json);
  if (type === 'tool_use') {
    content.calls.push({ id: upstreamId(textOf(id)), name: textOf(name), arguments: '' });
  }
  for (const token of [signature, data].map(textOf).filter(Boolean)) {
    const read = opened(token);
    // Thinking without a signature.
    if (JSON.stringify(read.detail) !== '{}') content.tokens.push(read);
  }
  if (event.type === 'message_delta') {
    content.stop = textOf(stop_reason);
    content.usage = objectOf(event.usage);
  }
  if (event.type === 'error') content.error = objectOf(event.error);
}

/** A token is `weir1:<provider>:` and base64url. */
function opened(token: string): JsonObject {
  const [, provider = '', payload = ''] = /^weir1:([\w-]+):([\w-]+)$/.exec(token) ?? [];
  const value = parseJson(Buffer.from(payload, 'base64url').toString());
  return { provider, ...(isObject(value) ? value : { broken: token }) };
}

function upstreamId(id: string): string {
  const encoded = /^toolu_weirb_(.+)$/.exec(id)?.[1];
  if (encoded !== undefined) return Buffer.from(encoded, 'base64url').toString();
  return id.replace(/^toolu_weir_/, '');
}
