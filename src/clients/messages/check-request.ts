/** Finds what of a body is of another kind than Anthropic's API has it: nothing of it would be left in a chat, and nobody be told (I2). */
import { type ApiError, apiError } from '../../canonical/error.ts';
import { isObject, type JsonObject, readArray } from '../../canonical/json.ts';

interface Kind {
  readonly name: string;
  readonly fits: (value: unknown) => boolean;
}

const TEXT: Kind = { name: 'a text', fits: isText };
const TEXTS: Kind = { name: 'a list of texts', fits: (value) => Array.isArray(value) && value.every(isText) };
const OBJECT: Kind = { name: 'an object', fits: isObject };
const OBJECTS: Kind = { name: 'a list of objects', fits: isObjects };
const CONTENT: Kind = {
  name: 'a text or a list of blocks',
  fits: (value) => isText(value) || isObjects(value),
};

const FIELDS: Readonly<Record<string, Kind>> = {
  system: CONTENT,
  tools: OBJECTS,
  tool_choice: OBJECT,
  stop_sequences: TEXTS,
  thinking: OBJECT,
  output_config: OBJECT,
};

/** Of the blocks that are read, by their type; another block is left out as a whole, by name. */
const BLOCK_FIELDS: ReadonlyMap<unknown, Readonly<Record<string, Kind>>> = new Map([
  ['text', { text: TEXT }],
  ['thinking', { thinking: TEXT }],
  ['tool_result', { content: CONTENT }],
]);

/** The first that does not fit, by its path; null where all does. What is absent or null fits. */
export function findMisfit(body: JsonObject): ApiError | null {
  return misfitIn(body, FIELDS, '') ?? first(body.messages, 'messages', misfitInMessage);
}

function misfitInMessage(message: JsonObject, path: string): ApiError | null {
  return (
    misfitIn(message, { content: CONTENT }, `${path}.`) ??
    first(message.content, `${path}.content`, (block, at) =>
      misfitIn(block, BLOCK_FIELDS.get(block.type) ?? {}, `${at}.`),
    )
  );
}

function misfitIn(
  object: JsonObject,
  fields: Readonly<Record<string, Kind>>,
  prefix: string,
): ApiError | null {
  for (const [field, kind] of Object.entries(fields)) {
    const value = object[field];
    if (value === undefined || value === null || kind.fits(value)) continue;
    const path = prefix + field;
    return apiError('invalid_request', `${path} must be ${kind.name}`, path);
  }
  return null;
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

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isObjects(value: unknown): boolean {
  return Array.isArray(value) && value.every(isObject);
}
