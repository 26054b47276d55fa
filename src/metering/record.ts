/** One request's usage record, and its compact form in KV metadata, which holds 1,024 bytes (M2, M4, L1). */
import { isObject, readCount, readText } from '../shared/json.ts';
import { boundName } from './bounded-names.ts';
import { isRequestId } from './request-id.ts';

export const STATUSES = ['finished', 'failed', 'timed_out', 'cancelled'] as const;
/** The dialects in which clients speak: in a record's compact form each is its place here. */
const CLIENTS = ['chat', 'completions', 'messages', 'responses'] as const;
const COST_SOURCES = ['none', 'upstream', 'table'] as const;

/** One target that was asked or left out, and how that ended. */
export interface Attempt {
  readonly provider: string;
  readonly model: string;
  /** The HTTP status of the upstream's answer; null where there was none. */
  readonly status: number | null;
  /** Why it gave no whole answer, or null. */
  readonly error_code: string | null;
  /** How long it took; null where it was not asked. */
  readonly ms: number | null;
  /** Where it was asked in vain, and why, where a setting may be the cause: an internal address, which only the admin sees. */
  readonly cause?: string;
}

/** What a listing of KV tells of a record, and all that reports need. */
export interface RecordSummary {
  /** A UUIDv7, whose time is the record's. */
  readonly request_id: string;
  /** The request's arrival: ISO 8601, UTC, with milliseconds. */
  readonly time: string;
  /** The request's end, in the same form. */
  readonly ended: string;
  readonly key_id: string;
  /** The model as the caller named it: an alias, or an address. */
  readonly asked: string;
  /** Who served, and the upstream's name of the model. */
  readonly provider: string;
  readonly model: string;
  readonly route: string;
  /** The dialect in which its client speaks. */
  readonly client: (typeof CLIENTS)[number];
  readonly status: (typeof STATUSES)[number];
  /** The code of the error that the client saw, or null. */
  readonly error_code: string | null;
  /** The upstream's own finish word, or null where there was none. */
  readonly finish_reason: string | null;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly cached_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly reasoning_tokens: number | null;
  readonly vendor_events: number;
  readonly vendor_tokens: number;
  /** From the request's arrival to the first text of the answer, or null where none came. */
  readonly first_token_ms: number | null;
  readonly total_ms: number;
  readonly bytes_out: number;
  /** Tokens of the prompt or of the completion are an estimate (M3). */
  readonly estimated: boolean;
  /** Fixed when the record is made (P4), in 10^-9 of the currency; null where no price is known, which is not free. */
  readonly cost_nanos: number | null;
  /** ISO 4217; null exactly where the cost is. */
  readonly currency: string | null;
  readonly cost_source: (typeof COST_SOURCES)[number];
  /** Since when the price of the table holds: ISO 8601, UTC; null where the cost is not the table's. */
  readonly price_since: string | null;
  /** The cost rests on estimated tokens, or is an upper bound (P1). */
  readonly cost_estimated: boolean;
}

export interface UsageRecord extends RecordSummary {
  /** Of the tokens written to a cache, those that it keeps for longer than by default; absent: none. */
  readonly cache_write_long_tokens?: number;
  /** Web searches that the provider ran and bills; absent: none. */
  readonly searches?: number;
  /** The targets that were asked, in order. */
  readonly attempts: readonly Attempt[];
  /** Names of what the upstream's request lacked of the caller's, or had otherwise (Q5, Q6). */
  readonly dropped?: readonly string[];
  readonly changed?: readonly string[];
}

/** The most that a record keeps of a name, in bytes of UTF-8: together with the rest they fit into metadata. */
const MAX_MODEL_BYTES = 208;
const MAX_ASKED_BYTES = 144;
const MAX_WORD_BYTES = 64;
const MAX_CURRENCY_BYTES = 8;
/** Names of fields in one list, and attempts. */
const MAX_NAMES = 64;

/** The record with its names and numbers bounded: every one that is stored has passed here, so that all stores hold the same. */
export function boundRecord(record: UsageRecord): UsageRecord {
  const { error_code, finish_reason, first_token_ms, cost_nanos } = record;
  return {
    ...record,
    asked: boundName(record.asked, MAX_ASKED_BYTES),
    model: boundName(record.model, MAX_MODEL_BYTES),
    error_code: error_code === null ? null : boundName(error_code, MAX_WORD_BYTES),
    finish_reason: finish_reason === null ? null : boundName(finish_reason, MAX_WORD_BYTES),
    prompt_tokens: boundCount(record.prompt_tokens),
    completion_tokens: boundCount(record.completion_tokens),
    total_tokens: boundCount(record.total_tokens),
    cached_tokens: boundKnown(record.cached_tokens),
    cache_write_tokens: boundKnown(record.cache_write_tokens),
    reasoning_tokens: boundKnown(record.reasoning_tokens),
    vendor_events: boundCount(record.vendor_events),
    vendor_tokens: boundCount(record.vendor_tokens),
    first_token_ms: boundKnown(first_token_ms),
    total_ms: boundCount(record.total_ms),
    bytes_out: boundCount(record.bytes_out),
    cost_nanos: boundKnown(cost_nanos),
    currency: record.currency === null ? null : boundName(record.currency, MAX_CURRENCY_BYTES),
    ...(record.cache_write_long_tokens && {
      cache_write_long_tokens: boundCount(record.cache_write_long_tokens),
    }),
    ...(record.searches && { searches: boundCount(record.searches) }),
    attempts: record.attempts.slice(0, MAX_NAMES).map((attempt) => ({
      ...attempt,
      model: boundName(attempt.model, MAX_MODEL_BYTES),
      error_code: attempt.error_code === null ? null : boundName(attempt.error_code, MAX_WORD_BYTES),
    })),
    ...(record.dropped && { dropped: boundNames(record.dropped) }),
    ...(record.changed && { changed: boundNames(record.changed) }),
  };
}

function boundNames(names: readonly string[]): readonly string[] {
  return names.slice(0, MAX_NAMES).map((name) => boundName(name, MAX_WORD_BYTES));
}

/** Upstreams tell what they like, and sums of it may leave the numbers that are exact. */
function boundCount(count: number): number {
  return Math.max(0, Math.min(Math.round(count), Number.MAX_SAFE_INTEGER));
}

function boundKnown(count: number | null): number | null {
  return count === null ? null : boundCount(count);
}

const ESTIMATED_TOKENS = 1;
const ESTIMATED_COST = 2;

/** The compact form as JSON has it: short names, no absent values (which are undefined here), nothing that follows from the rest. */
export function encodeRecord(record: RecordSummary): Readonly<Record<string, string | number | undefined>> {
  const { provider, model, asked, route, client, price_since } = record;
  return {
    id: record.request_id,
    t: record.time,
    k: record.key_id,
    p: provider,
    m: model,
    a: asked === `${provider}/${model}` ? undefined : asked,
    r: route,
    d: client === usualClient(route) ? undefined : CLIENTS.indexOf(client),
    s: record.status,
    e: record.error_code ?? undefined,
    f: record.finish_reason ?? undefined,
    pt: record.prompt_tokens,
    ct: record.completion_tokens,
    tt: record.total_tokens,
    ca: record.cached_tokens ?? undefined,
    cw: record.cache_write_tokens ?? undefined,
    rt: record.reasoning_tokens ?? undefined,
    ve: record.vendor_events,
    vt: record.vendor_tokens,
    ft: record.first_token_ms ?? undefined,
    ms: record.total_ms,
    b: record.bytes_out,
    x: (record.estimated ? ESTIMATED_TOKENS : 0) + (record.cost_estimated ? ESTIMATED_COST : 0),
    c: record.cost_nanos ?? undefined,
    cu: record.currency ?? undefined,
    cs: COST_SOURCES.indexOf(record.cost_source),
    ps: price_since === null ? undefined : Date.parse(price_since) / 1000,
  };
}

/** Whose a route is, where no other dialect's client asks for the same. */
function usualClient(route: string): RecordSummary['client'] {
  return route === 'completions' ? 'completions' : 'chat';
}

/** The record's summary out of its metadata, or null where that is none of Weir's. */
export function decodeRecord(metadata: unknown): RecordSummary | null {
  if (!isObject(metadata)) return null;
  const status = STATUSES.find((known) => known === metadata.s);
  const time = readText(metadata.t);
  const startMs = Date.parse(time ?? '');
  const request_id = readText(metadata.id);
  if (status === undefined || time === undefined || Number.isNaN(startMs) || request_id === undefined)
    return null;
  const total_ms = readCount(metadata.ms) ?? 0;
  const provider = readText(metadata.p) ?? '';
  const model = readText(metadata.m) ?? '';
  const flags = readCount(metadata.x) ?? 0;
  const priceSince = readCount(metadata.ps);
  const route = readText(metadata.r) ?? '';
  return {
    request_id,
    time,
    ended: isoTime(startMs + total_ms),
    key_id: readText(metadata.k) ?? '',
    asked: readText(metadata.a) ?? `${provider}/${model}`,
    provider,
    model,
    route,
    client: CLIENTS[readCount(metadata.d) ?? -1] ?? usualClient(route),
    status,
    error_code: readText(metadata.e) ?? null,
    finish_reason: readText(metadata.f) ?? null,
    prompt_tokens: readCount(metadata.pt) ?? 0,
    completion_tokens: readCount(metadata.ct) ?? 0,
    total_tokens: readCount(metadata.tt) ?? 0,
    cached_tokens: readCount(metadata.ca) ?? null,
    cache_write_tokens: readCount(metadata.cw) ?? null,
    reasoning_tokens: readCount(metadata.rt) ?? null,
    vendor_events: readCount(metadata.ve) ?? 0,
    vendor_tokens: readCount(metadata.vt) ?? 0,
    first_token_ms: readCount(metadata.ft) ?? null,
    total_ms,
    bytes_out: readCount(metadata.b) ?? 0,
    estimated: (flags & ESTIMATED_TOKENS) !== 0,
    cost_nanos: readCount(metadata.c) ?? null,
    currency: readText(metadata.cu) ?? null,
    cost_source: COST_SOURCES[readCount(metadata.cs) ?? 0] ?? 'none',
    price_since: priceSince === undefined ? null : isoTime(priceSince * 1000),
    cost_estimated: (flags & ESTIMATED_COST) !== 0,
  };
}

/** A whole record out of its JSON, or null where it is none: Weir alone writes them. */
export function decodeUsageRecord(value: unknown): UsageRecord | null {
  if (!isObject(value)) return null;
  const isRecord = isRequestId(readText(value.request_id) ?? '') && readText(value.key_id) !== undefined;
  return isRecord ? (value as unknown as UsageRecord) : null; // decode
}

/** The latest time that there is. */
const MAX_TIME_MS = 8.64e15;

const SECOND_MS = 1000;
/** The second of the last time that was written, and how its times begin: a request writes several of one second. */
let lastSecond = Number.NaN;
let lastStart = '';

/** ISO 8601, UTC, with milliseconds. */
export function isoTime(ms: number): string {
  if (ms > MAX_TIME_MS) return isoTime(MAX_TIME_MS);
  const second = Math.floor(ms / SECOND_MS);
  if (second !== lastSecond) {
    lastStart = new Date(ms).toISOString().slice(0, -'000Z'.length);
    lastSecond = second;
  }
  return `${lastStart}${String(Math.floor(ms) - second * SECOND_MS).padStart(3, '0')}Z`;
}
