/** Reasoning of Converse in OpenRouter's form, and back: signed texts, and redacted content in its two layers of base64. */
import type { Block, ReasoningBlock } from '../../canonical/conversation.ts';
import { reasoningOfProvider, signaturePayload, tagProvider } from '../../canonical/reasoning-details.ts';
import { decodeBase64, encodeBase64 } from '../../shared/encoding.ts';
import { type JsonObject, readText } from '../../shared/json.ts';
import type { ConverseFamily } from './family.ts';

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

/** Forms in which a client may hold this reasoning; null: a field of Anthropic's, which names none. */
const FORMATS: readonly unknown[] = [CLAUDE_FORMAT, RAW_FORMAT, null];

/** The reasoning of an assistant's turn, as it goes back: of its details, or of the client's other fields. */
export function reasoningContents(
  blocks: readonly Block[],
  { reasoningBack }: ConverseFamily,
  providerId: string,
): JsonObject[] {
  if (reasoningBack === 'none') return [];
  const reasoning = blocks.filter((block) => block.kind === 'reasoning');
  const own = reasoningOfProvider(reasoning, providerId);
  const others = reasoning.filter(({ detail }) => detail === undefined);
  const signed = own.filter(({ signature }) => signature !== undefined).flatMap(signedContent);
  if (signed.length > 0) return signed;
  const ofOthers = others.flatMap(signedContent);
  if (ofOthers.length > 0 || reasoningBack === 'signed') return ofOthers;
  // Without a signature the same text stands in the details and in the client's own field.
  const text = joined(own) || joined(others);
  return text === '' ? [] : [{ reasoningContent: { reasoningText: { text } } }];
}

function joined(reasoning: readonly ReasoningBlock[]): string {
  return reasoning.map(({ text }) => text).join('');
}

function signedContent({ text, signature }: ReasoningBlock): JsonObject[] {
  if (signature === undefined || !FORMATS.includes(signature.format)) return [];
  const { value, isEncrypted, format } = signature;
  if (!isEncrypted) return [{ reasoningContent: { reasoningText: { text, signature: value } } }];
  const redactedContent = format === RAW_FORMAT ? value : encodeBase64(value);
  return readText(redactedContent) === undefined ? [] : [{ reasoningContent: { redactedContent } }];
}
