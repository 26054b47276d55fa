/** The field `expires_at` of a new or changed key or token. */
import { type BodyField, invalidField } from '../auth/body-fields.ts';
import { isoDay } from '../metering/time.ts';
import { readText } from '../shared/json.ts';
import { ok } from '../shared/result.ts';

/** The expiry as an ISO 8601 time in the future, or null: never. */
export function timeField(): BodyField<string | null> {
  return {
    kind: 'time',
    read: (value, param, nowMs) => {
      const expiry = parseExpiry(value);
      const form = `${param} must be a time, as "2027-01-01T00:00:00Z", or seconds since 1970`;
      if (expiry === undefined) return invalidField(form, param);
      return expiry !== null && Date.parse(expiry) <= nowMs
        ? invalidField(`${param} must be in the future`, param)
        : ok(expiry);
    },
  };
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;
/** The year 2286. A larger number is a time in milliseconds by mistake. */
const MAX_EXPIRY_SECONDS = 1e10;

/** Reads an ISO 8601 time, or seconds since the epoch as in OpenAI's API. Null: never; undefined: invalid, such as February 30. */
function parseExpiry(value: unknown): string | null | undefined {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number') {
    return value >= 0 && value <= MAX_EXPIRY_SECONDS ? new Date(value * 1000).toISOString() : undefined;
  }
  const text = readText(value) ?? '';
  const ms = ISO_TIME.test(text) ? Date.parse(text) : Number.NaN;
  const day = text.slice(0, 10);
  return Number.isNaN(ms) || isoDay(Date.parse(day)) !== day ? undefined : new Date(ms).toISOString();
}
