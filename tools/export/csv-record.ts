/** Writes a usage record as a line of CSV. */
import { decimalText } from '../../src/api/csv.ts';
import { csvLine } from '../../src/shared/csv.ts';
import type { JsonObject } from '../simulator/json.ts';

const COLUMNS = [
  'request_id',
  'time',
  'ended',
  'key_id',
  'team',
  'team_name',
  'asked',
  'provider',
  'model',
  'route',
  'client',
  'status',
  'error_code',
  'finish_reason',
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'vendor_events',
  'vendor_tokens',
  'first_token_ms',
  'total_ms',
  'bytes_out',
  'estimated',
  'cost',
  'currency',
  'cost_source',
  'price_since',
  'cost_estimated',
  'attempts',
  'user',
  'session',
  'app',
  'tags',
] as const;

export function csvHeader(): string {
  return csvLine(COLUMNS);
}

export function csvRecord(record: JsonObject): string {
  return csvLine(COLUMNS.map((column) => cellOf(column, record[column])));
}

function cellOf(column: (typeof COLUMNS)[number], value: unknown): string {
  if (value === null || value === undefined) return '';
  // One JSON object in a cell.
  if (column === 'tags') return JSON.stringify(value);
  if (column === 'cost') return decimalText(Number(value));
  // `attempts`: their number.
  return Array.isArray(value) ? String(value.length) : String(value);
}
