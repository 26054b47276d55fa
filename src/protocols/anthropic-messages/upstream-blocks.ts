/** Reads one content block of an Anthropic message, whole or as it begins: its text, its thinking with its token, its call. */

import { readName } from '../../canonical/part.ts';
import { signaturePayload, tagProvider } from '../../canonical/reasoning-details.ts';
import { isObject, type JsonObject, readText, writeJson } from '../../shared/json.ts';

export interface ClaudeBlock {
  readonly text: string;
  readonly reasoning: string;
  /** OpenRouter's form of what Claude wants back (A7). */
  readonly details: readonly JsonObject[];
  /** A call of a tool of the client's: those that the provider runs itself are none of its business (A3). */
  readonly call: {
    readonly id: string | undefined;
    readonly name: string | undefined;
    /** JSON text; `""` where there are no arguments, or none yet. */
    readonly input: string;
  } | null;
}

const DETAIL_FORMAT = 'anthropic-claude-v1';

const NOTHING: ClaudeBlock = { text: '', reasoning: '', details: [], call: null };

/**
 * A block of a kind that is not listed carries nothing for a chat.
 * @param index the block's place in its message: what is wanted back is told apart by it
 * @param provider the id of the provider that made it
 * @param hasThought a text of its thinking came before
 */
export function readBlock(
  block: JsonObject,
  index: unknown,
  provider: string,
  hasThought = false,
): ClaudeBlock {
  switch (block.type) {
    case 'text':
      return { ...NOTHING, text: readText(block.text) ?? '' };
    case 'thinking':
      return thinking(block, index, provider, hasThought);
    case 'redacted_thinking': {
      const data = readText(block.data);
      if (data === undefined) return NOTHING;
      return {
        ...NOTHING,
        details: [{ type: 'reasoning.encrypted', data, ...maker(index, provider, false) }],
      };
    }
    case 'tool_use':
      return {
        ...NOTHING,
        call: { id: readName(block.id), name: readName(block.name), input: inputOf(block.input) },
      };
    default:
      return NOTHING;
  }
}

/**
 * The mark stands beside the signature and not on the pieces of the text: clients that join the pieces of a detail join the texts of
 * all their keys. A signature without a text is one of a thinking that is not shown, and goes back all the same.
 */
function thinking(block: JsonObject, index: unknown, provider: string, hasThought: boolean): ClaudeBlock {
  const text = readText(block.thinking) ?? '';
  const signature = readText(block.signature);
  if (text === '' && signature === undefined) return NOTHING;
  const detail = {
    type: 'reasoning.text',
    ...(text === '' ? {} : { text }),
    ...(signature === undefined
      ? { index }
      : { signature, ...maker(index, provider, hasThought || text !== '') }),
  };
  return { ...NOTHING, reasoning: text, details: [detail] };
}

function maker(index: unknown, provider: string, isOfText: boolean): JsonObject {
  return {
    id: tagProvider({ provider, payload: signaturePayload(index, isOfText) }),
    format: DETAIL_FORMAT,
    index,
  };
}

function inputOf(input: unknown): string {
  const isEmpty = !isObject(input) || Object.keys(input).length === 0;
  return isEmpty ? '' : (writeJson(input) ?? '');
}
