/**
 * The parameters of reports, lists and admin routes. An unknown one is refused: as a filter it would be ignored, and
 * the answer would be wrong.
 */
import { type ApiError, apiError } from '../canonical/error.ts';
import { unknownName } from '../shared/nearest.ts';
import { failure, ok, type Result } from '../shared/result.ts';

const MAX_SHOWN_CHARS = 64;

/** A parameter of a query. */
export interface Param<Value> {
  /** @param values one for each time that the query has it */
  readonly read: (values: readonly string[], name: string, nowMs: number) => Result<Value, ApiError>;
}

/** The parameters of a route, by their names. */
export type Params = Readonly<Record<string, Param<unknown>>>;

export type ParamValues<P extends Params> = {
  readonly [Name in keyof P]: P[Name] extends Param<infer Value> ? Value : never;
};

/** @returns null if the route has every parameter of the request */
export function unknownParam(query: URLSearchParams, known: Params = {}): ApiError | null {
  const names = Object.keys(known);
  const unknown = [...query.keys()].find((name) => !names.includes(name));
  if (unknown === undefined) return null;
  const param = unknown.slice(0, MAX_SHOWN_CHARS);
  return apiError('invalid_request', unknownName('This route has', 'parameter', param, names), param);
}

/** Reads the parameters in their order. Those that the route does not have are ignored: {@link unknownParam} refuses them. */
export function readParams<P extends Params>(
  query: URLSearchParams,
  known: P | undefined,
  nowMs: number,
): Result<ParamValues<P>, ApiError> {
  const values: Record<string, unknown> = {};
  for (const [name, param] of Object.entries(known ?? {})) {
    const value = param.read(query.getAll(name), name, nowMs);
    if (value.kind === 'error') return value;
    values[name] = value.value;
  }
  return ok(values as ParamValues<P>); // decode
}

/** As {@link readParams}, and refuses all others. @param known absent: none */
export function readQuery<P extends Params>(
  query: URLSearchParams,
  known: P | undefined,
  nowMs: number,
): Result<ParamValues<P>, ApiError> {
  const unknown = unknownParam(query, known);
  return unknown === null ? readParams(query, known, nowMs) : failure(unknown);
}
