/** One request's usage record, and its compact form in KV metadata, which holds 1,024 bytes (M2, M4). */
import { isObject, readCount, readText } from '../canonical/json.ts';

const STATUSES = ['finished', 'failed', 'timed_out', 'cancelled'] as const;

export interface UsageRecord {
  readonly request_id: string;
  /** ISO 8601, UTC, with milliseconds. */
  readonly time: string;
  readonly key_id: string;
  readonly provider: string;
  /** The upstream's name of the model that was asked for. */
  readonly model: string;
  readonly route: string;
  readonly status: (typeof STATUSES)[number];
  /** The code of the error that the client saw, or null. */
  readonly error_code: string | null;
  /** The upstream's own finish word, or null where there was none. */
  readonly finish_reason: string | null;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly cached_tokens: number | null;
  readonly reasoning_tokens: number | null;
  readonly vendor_events: number;
  readonly vendor_tokens: number;
  /** From the request's arrival to the first text of the answer, or null where none came. */
  readonly first_token_ms: number | null;
  readonly total_ms: number;
  readonly bytes_out: number;
  /** Tokens of the prompt or of the completion are an estimate (M3). */
  readonly estimated: boolean;
  /** Names of what the upstream's request lacked of the caller's, or had otherwise (Q5, Q6): in the record's value alone. */
  readonly dropped?: readonly string[];
  readonly changed?: readonly string[];
}

/** The most that metadata keeps of a text, in UTF-16 units, each of which is at most three bytes of JSON. */
const MAX_MODEL_CHARS = 128;
const MAX_WORD_CHARS = 32;

/** The compact form: short names, no absent values. */
export function encodeRecord(record: UsageRecord): Record<string, string | number> {
  const fields: Record<string, string | number | null> = {
    id: record.request_id,
    t: record.time,
    k: record.key_id,
    p: shorten(record.provider, MAX_WORD_CHARS),
    m: shorten(record.model, MAX_MODEL_CHARS),
    r: record.route,
    s: record.status,
    e: record.error_code === null ? null : shorten(record.error_code, MAX_WORD_CHARS),
    f: record.finish_reason === null ? null : shorten(record.finish_reason, MAX_WORD_CHARS),
    pt: record.prompt_tokens,
    ct: record.completion_tokens,
    tt: record.total_tokens,
    ca: record.cached_tokens,
    rt: record.reasoning_tokens,
    ve: record.vendor_events,
    vt: record.vendor_tokens,
    ft: record.first_token_ms,
    ms: record.total_ms,
    b: record.bytes_out,
    x: record.estimated ? 1 : 0,
  };
  const encoded: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(fields)) if (value !== null) encoded[name] = value;
  return encoded;
}

/** Cut, and without what JSON would escape with six bytes a unit: the bound on metadata is in bytes. */
function shorten(text: string, maxChars: number): string {
  return text
    .replace(/[^\x20-\u{10ffff}]|["\\\x7f]/gu, '')
    .slice(0, maxChars)
    .toWellFormed();
}

/** The record out of its metadata, or null where that is none of Weir's. */
export function decodeRecord(metadata: unknown): UsageRecord | null {
  if (!isObject(metadata)) return null;
  const status = STATUSES.find((known) => known === metadata.s);
  const time = readText(metadata.t);
  const request_id = readText(metadata.id);
  if (status === undefined || time === undefined || request_id === undefined) return null;
  return {
    request_id,
    time,
    key_id: readText(metadata.k) ?? '',
    provider: readText(metadata.p) ?? '',
    model: readText(metadata.m) ?? '',
    route: readText(metadata.r) ?? '',
    status,
    error_code: readText(metadata.e) ?? null,
    finish_reason: readText(metadata.f) ?? null,
    prompt_tokens: readCount(metadata.pt) ?? 0,
    completion_tokens: readCount(metadata.ct) ?? 0,
    total_tokens: readCount(metadata.tt) ?? 0,
    cached_tokens: readCount(metadata.ca) ?? null,
    reasoning_tokens: readCount(metadata.rt) ?? null,
    vendor_events: readCount(metadata.ve) ?? 0,
    vendor_tokens: readCount(metadata.vt) ?? 0,
    first_token_ms: readCount(metadata.ft) ?? null,
    total_ms: readCount(metadata.ms) ?? 0,
    bytes_out: readCount(metadata.b) ?? 0,
    estimated: metadata.x === 1,
  };
}
