/** Checks the types of a request's fields. A field of the wrong type would be dropped without notice, so it is an error. */
import { type ApiError, apiError } from '../../canonical/error.ts';
import type { JsonObject } from '../../shared/json.ts';

export interface ValueType {
  /** What the value must be: the error message says `<field> must be <name>`. */
  readonly name: string;
  readonly fits: (value: unknown) => boolean;
}

export type ValueTypes = Readonly<Record<string, ValueType>>;

/**
 * The error of the first field of the wrong type, or null. Absent and null fields are valid.
 * @param prefix the path of the object, with a dot at its end
 */
export function validateTypes(object: JsonObject, types: ValueTypes, prefix = ''): ApiError | null {
  for (const [field, type] of Object.entries(types)) {
    const value = object[field];
    if (!isPresent(value) || type.fits(value)) continue;
    const path = prefix + field;
    return apiError('invalid_request', `${path} must be ${type.name}`, path);
  }
  return null;
}

/** Whether a field has a value: null counts as absent. */
export function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** A check for {@link validateTypes}. */
export function isString(value: unknown): boolean {
  return typeof value === 'string';
}
