/** The parameters of reports, lists and admin routes. An unknown one is refused: as a filter it would be ignored, and the answer would be wrong. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { unknownName } from '../shared/nearest.ts';

const MAX_SHOWN_CHARS = 64;

/** @returns null if the route has every parameter of the request */
export function unknownParam(params: URLSearchParams, known: readonly string[]): ApiError | null {
  const unknown = [...params.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return null;
  const param = unknown.slice(0, MAX_SHOWN_CHARS);
  return apiError('invalid_request', unknownName('This route has', 'parameter', param, known), param);
}
