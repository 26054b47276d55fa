/** What each field of a body and its blocks must be, as Anthropic's API has it (I2). */
import type { ApiError } from '../../canonical/error.ts';
import { isObject, type JsonObject, readArray } from '../../shared/json.ts';
import { findMisfit, isText, type Kind, type Kinds } from '../shared/validate-types.ts';

const TEXT: Kind = { name: 'a text', fits: isText };
const TEXTS: Kind = { name: 'a list of texts', fits: (value) => Array.isArray(value) && value.every(isText) };
const OBJECT: Kind = { name: 'an object', fits: isObject };
const OBJECTS: Kind = { name: 'a list of objects', fits: isObjects };
const CONTENT: Kind = {
  name: 'a text or a list of blocks',
  fits: (value) => isText(value) || isObjects(value),
};

const FIELDS: Kinds = {
  system: CONTENT,
  tools: OBJECTS,
  tool_choice: OBJECT,
  stop_sequences: TEXTS,
  thinking: OBJECT,
  output_config: OBJECT,
};

/** Of the blocks that are read, by their type; another block is left out as a whole, by name. */
const BLOCK_FIELDS: ReadonlyMap<unknown, Kinds> = new Map([
  ['text', { text: TEXT }],
  ['thinking', { thinking: TEXT }],
  ['tool_result', { content: CONTENT }],
]);

/** The first that does not fit, by its path; null where all does. */
export function checkRequest(body: JsonObject): ApiError | null {
  return findMisfit(body, FIELDS) ?? first(body.messages, 'messages', misfitInMessage);
}

function misfitInMessage(message: JsonObject, path: string): ApiError | null {
  return (
    findMisfit(message, { content: CONTENT }, `${path}.`) ??
    first(message.content, `${path}.content`, (block, at) =>
      findMisfit(block, BLOCK_FIELDS.get(block.type) ?? {}, `${at}.`),
    )
  );
}

/** The first misfit among the objects of a list. */
function first(
  list: unknown,
  path: string,
  find: (object: JsonObject, path: string) => ApiError | null,
): ApiError | null {
  for (const [at, object] of readArray(list).entries()) {
    const misfit = isObject(object) ? find(object, `${path}.${at}`) : null;
    if (misfit !== null) return misfit;
  }
  return null;
}

function isObjects(value: unknown): boolean {
  return Array.isArray(value) && value.every(isObject);
}
