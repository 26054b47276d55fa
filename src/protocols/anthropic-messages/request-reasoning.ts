/** Rebuilds an assistant's thinking blocks from what its message carries of them: they come back whole, first and in order, or not at all (A7). */

import { detailsOfProvider } from '../../request-translation/messages.ts';
import { isObject, type JsonObject, readArray, readText } from '../../shared/json.ts';

/** OpenRouter's name of the form; a detail of another one is another maker's. */
const FORMATS = ['anthropic-claude-v1', undefined, null];

/** From `reasoning_details`, LiteLLM's `thinking_blocks`, or parts of the content: the first of them that has a token. */
export function thinkingBlocks(message: JsonObject, providerId: string): JsonObject[] {
  const details = detailsOfProvider(message, providerId).filter(({ format }) =>
    FORMATS.some((own) => own === format),
  );
  const sources = [
    details.flatMap(blockOfDetail),
    readArray(message.thinking_blocks).filter(isObject).flatMap(ownBlock),
    readArray(message.content).filter(isObject).flatMap(ownBlock),
  ];
  return sources.find((blocks) => blocks.length > 0) ?? [];
}

/** A text without a signature is of no use: Claude signs each. */
function blockOfDetail({ type, text, signature, data }: JsonObject): JsonObject[] {
  if (type === 'reasoning.encrypted' && readText(data) !== undefined) {
    return [{ type: 'redacted_thinking', data }];
  }
  return type === 'reasoning.text' ? thinkingBlock(text, signature) : [];
}

function ownBlock({ type, thinking, signature, data }: JsonObject): JsonObject[] {
  if (type === 'redacted_thinking' && readText(data) !== undefined) return [{ type, data }];
  return type === 'thinking' ? thinkingBlock(thinking, signature) : [];
}

/** Thinking that was not shown has a signature and no text, and comes back so: BerriAI/litellm#41361, #38809. */
function thinkingBlock(text: unknown, signature: unknown): JsonObject[] {
  if (readText(signature) === undefined) return [];
  return [{ type: 'thinking', thinking: readText(text) ?? '', signature }];
}
