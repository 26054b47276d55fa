/** Refusals that name what a request has, as OpenAI and hosts with pydantic do, up to the size of which Weir reads them. */
import { isObject, type JsonObject, objectOf } from '../../../src/shared/json.ts';

const REFUSAL_CHARS = 64 * 1024;
/** Places of a body that are visited, and members of one object. */
const MAX_PLACES = 4000;
const MAX_MEMBERS = 200;
const MAX_PATH_CHARS = 400;
/** Of each kind in one sentence. */
const NAMED = 30;

/** The control: as few words as a refusal may have. */
export const SHORT_REFUSAL = '{"error":"refused"}';

interface Place {
  readonly value: unknown;
  readonly path: string;
}

/** @returns what the first places of the body have, whatever its depth and width */
function wordsOf(body: JsonObject) {
  const names = new Set<string>();
  const paths: string[] = [];
  const values: string[] = [];
  const places: Place[] = [{ value: body, path: '' }];
  for (const { value, path } of places) {
    if (!isObject(value) && !Array.isArray(value)) {
      // What a writer left out is `undefined`, and has no text.
      const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
      paths.push(path);
      values.push(`'${text.slice(0, 8)}'`, text.slice(0, 60));
      continue;
    }
    for (const [key, inner] of membersOf(value, MAX_PLACES - places.length)) {
      const name = key.slice(0, 64);
      if (!Array.isArray(value)) names.add(name);
      // The deepest paths lose their ends, so that all of them together stay small.
      places.push({ value: inner, path: path === '' ? name : `${path}.${name}`.slice(0, MAX_PATH_CHARS) });
    }
  }
  return { names: [...names], paths, values };
}

function membersOf(value: object, most: number): [string, unknown][] {
  const count = Math.min(most, MAX_MEMBERS);
  if (Array.isArray(value)) return value.slice(0, count).map((item, at) => [String(at), item]);
  return Object.entries(value).slice(0, count);
}

/** @returns the body of a refusal that names fields, values and paths of the request back */
export function refusalOf(body: JsonObject): string {
  const { names, paths, values } = wordsOf(body);
  const fields = Object.keys(body).map((key) => key.slice(0, 64));
  const sentences = (at: number) => {
    const part = (list: readonly string[]) => list.slice(at, at + NAMED).join(', ');
    return [
      `Unrecognized request arguments supplied: ${part(fields)}, ${part(names)}.`,
      `${part(paths)}: Extra inputs are not permitted.`,
      `Invalid value: ${part(values)}. Supported values are: 'low', 'medium'.`,
      `'messages' must not have ${part(values)}, and ${part(names)} are not supported with this model.`,
      'messages.0.content.0.cache_control, tools.0.strict: Extra inputs are not permitted.',
      'max_tokens must be at most 5. Use max_completion_tokens instead.',
    ].join(' ');
  };
  const all: string[] = [];
  const most = Math.max(fields.length, names.length, paths.length, values.length);
  for (let chars = 0, at = 0; chars < REFUSAL_CHARS; at += NAMED) {
    const next = sentences(at % most);
    all.push(next);
    chars += next.length;
  }
  const message = all.join(' ').slice(0, REFUSAL_CHARS - 200);
  const param = String(fields[0] ?? 'messages');
  return JSON.stringify({
    error: { message, type: 'invalid_request_error', param, code: 'unknown_parameter' },
  });
}

/** @param body the JSON text of a request */
export function refusalOfText(body: string): string {
  return refusalOf(objectOf(JSON.parse(body)));
}
