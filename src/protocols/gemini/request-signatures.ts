/** Finds the thought signatures that a history brought back, and the parts that they belong to (A7). */

import { readProviderTag } from '../../canonical/provider-tag.ts';
import { providerOfExtra } from '../../request-translation/messages.ts';
import { isObject, type JsonObject, readArray, readText } from '../../shared/json.ts';

/** OpenRouter's name for the form of Google's tokens. */
const FORMAT = 'google-gemini-v1';

/** A signature of a text, and of how many of the first characters: none where its part was empty. */
export interface TextSignature {
  readonly signature: string;
  readonly chars: number;
}

export interface Signatures {
  /** By the id of the call. */
  readonly calls: ReadonlyMap<string, string>;
  readonly texts: readonly TextSignature[];
  readonly thoughts: readonly string[];
}

/**
 * Those of an assistant's message: its own, tagged by it, and untagged ones in Google's form, which came here by another way.
 * @param maker the id of the provider that the message goes to
 */
export function readSignatures(message: JsonObject, maker: string): Signatures {
  const calls = new Map<string, string>();
  const texts: TextSignature[] = [];
  const thoughts: string[] = [];
  const toolCalls = readArray(message.tool_calls).filter(isObject);
  const callIds = new Set(toolCalls.map(({ id }) => id));
  for (const detail of readArray(message.reasoning_details).filter(isObject)) {
    const signature = readText(detail.data) ?? readText(detail.signature);
    const made = readProviderTag(detail.id);
    if (signature === undefined || detail.format !== FORMAT || (made?.provider ?? maker) !== maker) continue;
    const [kind = '', chars = ''] = made?.payload.split('-') ?? [];
    // OpenRouter's detail has the id of the call that it belongs to.
    const isOfCall = detail.id !== undefined && callIds.has(detail.id);
    if (isOfCall) calls.set(readText(detail.id) ?? '', signature);
    else if (kind === 'thought' || detail.type === 'reasoning.text') thoughts.push(signature);
    else texts.push({ signature, chars: Number.parseInt(chars, 10) || 0 });
  }
  for (const { id, extra_content: extra } of toolCalls) {
    const google = isObject(extra) ? extra.google : undefined;
    const signature = isObject(google) ? readText(google.thought_signature) : undefined;
    const isOwn = (providerOfExtra(extra) ?? maker) === maker;
    if (signature !== undefined && isOwn) calls.set(readText(id) ?? '', signature);
  }
  return { calls, texts, thoughts };
}
