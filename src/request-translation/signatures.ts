/** Gives a step of Gemini 3 that lost its signature the documented stand-in, so that the step is not refused (A7). */
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { omit } from '../shared/objects.ts';

/** Where an API has signatures: on a call, or among the details of the message's reasoning. */
export type SignaturePlace = 'extra_content' | 'reasoning_details';

/** https://ai.google.dev/gemini-api/docs/thought-signatures, for calls that another model made (read 2026-11-21). */
export const STAND_IN = 'skip_thought_signature_validator';

/** Who made what came with a tool call, or null where Weir did not mark it. */
export function providerOfExtra(extra: unknown): string | null {
  const weir = isObject(extra) ? extra.weir : undefined;
  return isObject(weir) ? (readText(weir.provider) ?? null) : null;
}

/**
 * A tool call with what came with it, where that is the provider's own or nobody's by its mark, which stays here.
 * @param providerId null for a provider that takes nothing of the kind
 */
export function withOwnExtra(call: JsonObject, providerId: string | null): JsonObject {
  const { extra_content: extra } = call;
  const maker = providerOfExtra(extra);
  if (providerId === null || (maker ?? providerId) !== providerId) return omit(call, 'extra_content');
  return maker === null || !isObject(extra) ? call : { ...call, extra_content: omit(extra, 'weir') };
}

/** A message with tool calls: itself where it is signed or needs no signature. Of parallel calls only the first has one. */
export function withSignature(message: JsonObject, place: SignaturePlace | null): JsonObject {
  const [first, ...others] = readArray(message.tool_calls);
  if (place === null || !isObject(first)) return message;
  if (place === 'extra_content') {
    if ([first, ...others].some(isSignedCall)) return message;
    const signed = { ...first, extra_content: { google: { thought_signature: STAND_IN } } };
    return { ...message, tool_calls: [signed, ...others] };
  }
  const details = readArray(message.reasoning_details);
  if (details.some(isSignedDetail)) return message;
  // The form that OpenRouter has for it: RooCodeInc/Roo-Code#10640, 2026-01-12.
  const base = { type: 'reasoning.encrypted', data: STAND_IN, format: 'google-gemini-v1', index: 0 };
  return { ...message, reasoning_details: [...details, { ...base, id: readText(first.id) }] };
}

/** Whether a conversation goes on behind a step whose reasoning is not there, or not signed. */
export function isBehindUnsignedStep(messages: readonly unknown[]): boolean {
  const all = messages.filter(isObject);
  const at = all.findLastIndex(({ role }) => role === 'assistant');
  return all[at + 1]?.role === 'tool' && !readArray(all[at]?.reasoning_details).some(isSignedDetail);
}

function isSignedCall(call: unknown): boolean {
  const extra = isObject(call) ? call.extra_content : undefined;
  const google = isObject(extra) ? extra.google : undefined;
  return isObject(google) && readText(google.thought_signature) !== undefined;
}

function isSignedDetail(detail: unknown): boolean {
  return isObject(detail) && (readText(detail.data) ?? readText(detail.signature)) !== undefined;
}
