/** Events of a Gemini server (`:streamGenerateContent?alt=sse`). */
import type { Json, JsonObject } from '../contract/json.ts';
import { piecesOf, sse } from './sse.ts';

export const USAGE = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };

/** Google ends lines with CR LF. */
export function gemini(value: JsonObject): string {
  return sse(value).replaceAll('\n', '\r\n');
}

export function event(
  parts: readonly JsonObject[],
  candidate: JsonObject = {},
  more: JsonObject = {},
): string {
  return gemini({
    candidates: [{ content: { parts: [...parts], role: 'model' }, index: 0, ...candidate }],
    modelVersion: 'conformance-1',
    responseId: 'c0f1',
    ...more,
  });
}

export function words(text: string): string[] {
  return piecesOf(text).map((piece) => event([{ text: piece }]));
}

export function thoughts(text: string): string[] {
  return piecesOf(text).map((piece) => event([{ text: piece, thought: true }]));
}

export function call(name: string, args: JsonObject): JsonObject {
  return { functionCall: { name, args } };
}

export function finish(reason: Json, usage: JsonObject = USAGE): string {
  return event([{ text: '' }], { finishReason: reason }, { usageMetadata: usage });
}
