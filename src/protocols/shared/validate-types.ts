/** Finds what of a request is of another kind than its API has it: nothing of it would be left in a chat, and nobody be told (I2). */
import { type ApiError, apiError } from '../../canonical/error.ts';
import type { JsonObject } from '../../shared/json.ts';

/** What a value must be, in the words behind "must be", and whether it is. */
export interface ValueType {
  readonly name: string;
  readonly fits: (value: unknown) => boolean;
}

export type ValueTypes = Readonly<Record<string, ValueType>>;

/** The first field whose value does not fit, by its path; null where all do. What is absent or null fits. */
export function validateTypes(object: JsonObject, kinds: ValueTypes, prefix = ''): ApiError | null {
  for (const [field, kind] of Object.entries(kinds)) {
    const value = object[field];
    if (value === undefined || value === null || kind.fits(value)) continue;
    const path = prefix + field;
    return apiError('invalid_request', `${path} must be ${kind.name}`, path);
  }
  return null;
}

export function isString(value: unknown): boolean {
  return typeof value === 'string';
}
