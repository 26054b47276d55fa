/** What each field of a body and its blocks must be, as Anthropic's API has it (I2). */
import type { ApiError } from '../../canonical/error.ts';
import { isObject, type JsonObject, readArray } from '../../shared/json.ts';
import { isString, type ValueType, type ValueTypes, validateTypes } from '../shared/validate-types.ts';

const TEXT: ValueType = { name: 'a text', fits: isString };
const TEXTS: ValueType = {
  name: 'a list of texts',
  fits: (value) => Array.isArray(value) && value.every(isString),
};
const OBJECT: ValueType = { name: 'an object', fits: isObject };
const OBJECTS: ValueType = { name: 'a list of objects', fits: isObjects };
const CONTENT: ValueType = {
  name: 'a text or a list of blocks',
  fits: (value) => isString(value) || isObjects(value),
};

const FIELDS: ValueTypes = {
  system: CONTENT,
  tools: OBJECTS,
  tool_choice: OBJECT,
  stop_sequences: TEXTS,
  thinking: OBJECT,
  output_config: OBJECT,
};

/** Of the blocks that are read, by their type; another block is left out as a whole, by name. */
const BLOCK_FIELDS: ReadonlyMap<unknown, ValueTypes> = new Map([
  ['text', { text: TEXT }],
  ['thinking', { thinking: TEXT }],
  ['tool_result', { content: CONTENT }],
]);

/** The first that does not fit, by its path; null where all does. */
export function checkRequest(body: JsonObject): ApiError | null {
  return validateTypes(body, FIELDS) ?? first(body.messages, 'messages', misfitInMessage);
}

function misfitInMessage(message: JsonObject, path: string): ApiError | null {
  return (
    validateTypes(message, { content: CONTENT }, `${path}.`) ??
    first(message.content, `${path}.content`, (block, at) =>
      validateTypes(block, BLOCK_FIELDS.get(block.type) ?? {}, `${at}.`),
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
    const mismatch = isObject(object) ? find(object, `${path}.${at}`) : null;
    if (mismatch !== null) return mismatch;
  }
  return null;
}

function isObjects(value: unknown): boolean {
  return Array.isArray(value) && value.every(isObject);
}
