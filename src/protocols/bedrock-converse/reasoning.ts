/** Reasoning of Converse in OpenRouter's form, and back: signed texts, and redacted content in its two layers of base64. */
import { signaturePayload, tagProvider } from '../../canonical/reasoning-details.ts';
import { decodeBase64, encodeBase64 } from '../../shared/encoding.ts';
import type { JsonObject } from '../../shared/json.ts';

/** OpenRouter's name for Claude's reasoning. */
const CLAUDE_FORMAT = 'anthropic-claude-v1';

/** Redacted content that is no text in base64, as it came. */
const RAW_FORMAT = 'bedrock-converse-v1';

interface Thought {
  readonly text: string;
  readonly signature: string | undefined;
  readonly redacted: string | undefined;
  /** The index of its block. */
  readonly index: unknown;
  /** Text of the same block came before. */
  readonly hasText: boolean;
  /** The id of the provider that made it. */
  readonly provider: string;
}

/**
 * The entries of `reasoning_details`. Redacted content is Claude's `data` in base64 once more: without that layer it is what clients of
 * Messages know.
 */
export function reasoningDetail({
  text,
  signature,
  redacted,
  index,
  hasText,
  provider,
}: Thought): JsonObject[] {
  const details: JsonObject[] = [];
  const tag = (isOfText: boolean) => tagProvider({ provider, payload: signaturePayload(index, isOfText) });
  if (text !== '' || signature !== undefined) {
    details.push({
      type: 'reasoning.text',
      ...(text === '' ? {} : { text }),
      ...(signature === undefined
        ? { index }
        : { signature, id: tag(hasText || text !== ''), format: CLAUDE_FORMAT, index }),
    });
  }
  if (redacted !== undefined) {
    const inner = decodeBase64(redacted);
    const isText = inner !== null && encodeBase64(inner) === redacted;
    const data = isText ? inner : redacted;
    const format = isText ? CLAUDE_FORMAT : RAW_FORMAT;
    details.push({ type: 'reasoning.encrypted', data, id: tag(false), format, index });
  }
  return details;
}
