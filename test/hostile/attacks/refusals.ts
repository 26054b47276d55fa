/** Refusals that name what a request has, as OpenAI and hosts with pydantic do, up to the size of which Weir reads them. */
import { isObject, type JsonObject, objectOf } from '../../../src/shared/json.ts';

const REFUSAL_CHARS = 64 * 1024;
/** Places of a body that are visited, and members of one object. */
const MAX_PLACES = 2000;
const MAX_MEMBERS = 200;
/** Of each kind in one sentence. */
const NAMED = 30;

/** The control: as few words as a refusal may have. */
export const SHORT_REFUSAL = '{"error":"refused"}';

/** @returns the body of a refusal that names fields, values and paths of the request back */
export function refusalOf(body: JsonObject): string {
  const names = new Set<string>();
  const paths: string[] = [];
  const values: string[] = [];
  const visit = (value: unknown, path: string): void => {
    if (paths.length >= MAX_PLACES) return;
    if (!isObject(value) && !Array.isArray(value)) {
      paths.push(path);
      // An integer beyond 2^53 is an object without a text of its own.
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      values.push(`'${text.slice(0, 8)}'`, text.slice(0, 60));
      return;
    }
    for (const [key, inner] of Object.entries(value).slice(0, MAX_MEMBERS)) {
      const name = key.slice(0, 64);
      if (!Array.isArray(value)) names.add(name);
      visit(inner, path === '' ? name : `${path}.${name}`);
    }
  };
  visit(body, '');
  const fields = Object.keys(body).map((key) => key.slice(0, 64));
  const sentences = (at: number) => {
    const part = (list: readonly string[]) => list.slice(at, at + NAMED).join(', ');
    return [
      `Unrecognized request arguments supplied: ${part(fields)}, ${part([...names])}.`,
      `${part(paths)}: Extra inputs are not permitted.`,
      `Invalid value: ${part(values)}. Supported values are: 'low', 'medium'.`,
      `'messages' must not have ${part(values)}, and ${part([...names])} are not supported with this model.`,
      'messages.0.content.0.cache_control, tools.0.strict: Extra inputs are not permitted.',
      'max_tokens must be at most 5. Use max_completion_tokens instead.',
    ].join(' ');
  };
  const all: string[] = [];
  for (let chars = 0, at = 0; chars < REFUSAL_CHARS; at += NAMED) {
    const next = sentences(at % MAX_PLACES);
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
