/** The parameters of reports, lists and admin routes. An unknown one is refused: as a filter it would be ignored, and the answer would be wrong. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { didYouMean } from '../shared/nearest.ts';

const MAX_SHOWN_CHARS = 64;

/** @returns null if the route has every parameter of the request */
export function unknownParam(params: URLSearchParams, known: readonly string[]): ApiError | null {
  const unknown = [...params.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return null;
  const param = unknown.slice(0, MAX_SHOWN_CHARS);
  const all = known.length === 0 ? 'It takes none' : `The parameters are ${known.join(', ')}`;
  const hint = didYouMean(unknown, known);
  const message = `This route has no parameter ${JSON.stringify(param)}${hint}${hint === '' ? '.' : ''} ${all}`;
  return apiError('invalid_request', message, param);
}
