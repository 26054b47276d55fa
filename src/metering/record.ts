/** The usage record of one request, the charge that travels with it, and its compact form for KV metadata. */
import { ERRORS_OF_PROVIDERS, FAULTS, type Fault } from '../canonical/fault.ts';
import { isObject, type JsonObject, readCount, readText } from '../shared/json.ts';
import type { Writable } from '../shared/writable.ts';
import type { CostParts } from './pricing/cost.ts';
import { isoTime, isRequestId } from './time.ts';

export const STATUSES = ['finished', 'failed', 'timed_out', 'cancelled'] as const;
/** Client protocols. The compact form stores the index in this list, so the order must not change. */
export const CLIENTS = ['chat', 'completions', 'messages', 'responses', 'gemini'] as const;
/** The compact form stores the index in this list, too. */
export const COST_SOURCES = ['none', 'upstream', 'table'] as const;

/** The kinds of tokens by which a cost is divided, in the order of the compact form. */
export const COST_PARTS = ['input', 'cached', 'output'] as const;

/** One target that was tried or skipped, and the result. */
export interface RecordedAttempt {
  readonly provider: string;
  readonly model: string;
  /** The HTTP status of the upstream's response; null if there was none. */
  readonly status: number | null;
  /** Why the attempt failed, or null. */
  readonly error_code: string | null;
  /** Duration; null if the target was skipped. */
  readonly ms: number | null;
  /** A chat request was sent through Responses; absent: it was not. */
  readonly api?: 'responses';
  /** The provider's id of the run, by which its own logs have it; absent: it has none. */
  readonly run_id?: string;
  /**
   * The upstream address and the reason of a failure that a setting may have caused, or the words of a refusal after which the request
   * was changed. Only the admin sees it, because the address may be internal.
   */
  readonly cause?: string;
  /**
   * What the provider said about the failure, without the prompt, or what Weir says of it: the first 300 characters.
   * Absent: nothing is known.
   */
  readonly message?: string;
  /** The error that the client received has this message, so the client's key sees it in the record. */
  readonly message_shown?: true;
}

/** Who made a request and for what, from the request, its key or its host. Names are bounded; a null fact is not known. */
export interface Attribution {
  readonly user: string | null;
  readonly session: string | null;
  /** The program that sent the request. */
  readonly app: string | null;
  readonly tags: Tags;
}

export type Tags = Readonly<Record<string, string>>;

export const NO_ATTRIBUTION: Attribution = { user: null, session: null, app: null, tags: {} };

/** The part of a record that fits into KV metadata. Reports need only this part. */
export interface RecordSummary extends Omit<Attribution, 'tags'> {
  /** A UUIDv7 of the time of arrival. */
  readonly request_id: string;
  /** Time of arrival: ISO 8601, UTC, with milliseconds. */
  readonly time: string;
  /** Time of the end, in the same form. */
  readonly ended: string;
  readonly key_id: string;
  /** The team of the key. Absent: it had none. */
  readonly team?: string;
  /** The requested model: an alias or an address. */
  readonly asked: string;
  /** The provider that served the request or was tried last, and its name of the model. */
  readonly provider: string;
  readonly model: string;
  readonly route: string;
  /** The client protocol. */
  readonly client: (typeof CLIENTS)[number];
  readonly status: (typeof STATUSES)[number];
  /** The code of the error that the client received, or null. */
  readonly error_code: string | null;
  /** Weir's code of that error, where the client's is the provider's own; otherwise the same. Null if there was none. */
  readonly error: string | null;
  /** Whose fault the error is; null if there was none. */
  readonly fault: Fault | null;
  /** The upstream's own finish reason, or null. */
  readonly finish_reason: string | null;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly cached_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly reasoning_tokens: number | null;
  readonly vendor_events: number;
  readonly vendor_tokens: number;
  /** From the arrival to the first text of the output; null if there was no text. */
  readonly first_token_ms: number | null;
  readonly total_ms: number;
  readonly bytes_out: number;
  /** The tokens of the prompt or of the completion are an estimate. */
  readonly estimated: boolean;
  /** Integer of 10^-9 of the currency, fixed when the record is made; null if no price is known, which does not mean free. */
  readonly cost_nanos: number | null;
  /**
   * What the tokens of each kind cost, of `cost_nanos`: input (cache writes included), input that was read from the cache, and output. The
   * rest is for searches, or not divided. Absent: nothing is divided, as a provider reports one sum, or the compact form has no room.
   */
  readonly cost_parts_nanos?: CostParts;
  /** ISO 4217; null if the cost is null. */
  readonly currency: string | null;
  readonly cost_source: (typeof COST_SOURCES)[number];
  /** The `since` of the price that was applied: ISO 8601, UTC; null if the cost was not computed from a price. */
  readonly price_since: string | null;
  /** The cost is computed from estimated tokens, or is an upper bound. */
  readonly cost_estimated: boolean;
}

export interface UsageRecord extends RecordSummary {
  /** The key's budget was used up, so the output was ended as one that has reached its limit. Absent: it ended otherwise. */
  readonly ended_by?: 'budget';
  /** The part of `cache_write_tokens` that the cache keeps for longer than its default time; absent: none. */
  readonly cache_write_long_tokens?: number;
  /** Web searches that the provider ran and bills; absent: none. */
  readonly searches?: number;
  /** The hashes of the prompt as it was sent (`prompt-hashes.ts`), at most 108 characters. Absent: none. */
  readonly prefix?: string;
  /** How much less a million tokens of the prompt cost where they are read from the cache, in 10^-9 of the currency. Absent: unknown. */
  readonly cache_saves?: number;
  /** Why the prompt was not read from the cache. Absent: not compared. */
  readonly cache?: CacheReport;
  readonly tags: Tags;
  /** The targets that were tried or skipped, in order. */
  readonly attempts: readonly RecordedAttempt[];
  /** Names of request fields that were not sent to the provider, or were sent with another value. */
  readonly dropped?: readonly string[];
  readonly changed?: readonly string[];
}

/** In the order in which they are found, except that a request without an earlier one is `first`. */
const CACHE_CAUSES = [
  'first',
  'model',
  'target',
  'settings',
  'tools',
  'system',
  'history',
  'expired',
  'provider',
  'none',
  'unknown',
] as const;
type CacheCause = (typeof CACHE_CAUSES)[number];

/** Why Weir chose another target than for the earlier request. */
const TARGET_REASONS = ['fallback', 'circuit', 'weight'] as const;
export type TargetReason = (typeof TARGET_REASONS)[number];

/** The comparison of a request's beginning with an earlier one. */
export interface PrefixChange {
  readonly cause: CacheCause;
  /** With `history`: the turn that changed, counted from the end of the earlier request; absent: it is before its last eight. */
  readonly at?: number;
  /** With `model` and `target`: why Weir chose the target. Absent: the client asked for it. */
  readonly by?: TargetReason;
}

/** What a usage record says about the prompt cache. */
export interface CacheReport extends PrefixChange {
  /** What could have been read from the cache had nothing changed, less what was read. */
  readonly lost_tokens: number;
  /** In 10^-9 of the record's currency: these tokens at the difference of the prices of uncached and cached input. Absent: unknown. */
  readonly lost_nanos?: number;
}

/** What a request is charged with against its key's limits. It differs from the record where the record holds estimates. */
export interface Charge {
  /** As reported; at its upper bound where the provider reported nothing. */
  readonly tokens: number;
  /** `nano`: integer of 10^-9 of the currency. Null if unknown. */
  readonly cost: { readonly currency: string; readonly nano: number } | null;
  /** The part of both that is charged at its upper bound; absent: none. */
  readonly unreported?: { readonly tokens: number; readonly nano: number };
  /** The record's tokens, which `tpm` counts; absent: the same as `tokens`. */
  readonly recordedTokens?: number;
  /** The whole prompt under a keyed hash, with its tokens as the provider counted them; absent: not known. */
  readonly counted?: { readonly hash: string; readonly tokens: number };
  /** The UTC day on which the request counts if it could not be reserved (`LEDGER=kv`); absent: it was reserved. */
  readonly unreservedDay?: string;
  /** The ledger object of the user that reserved the request, and reports the charge to its key's. Absent: the key's reserved it. */
  readonly userObject?: string;
  /** The ledger object of the shard that reserved the request, and stores its record (`LEDGER=object`). Absent: the key's does. */
  readonly shard?: string;
}

/** The charge of a request that was not sent to any upstream. */
export const NO_CHARGE: Charge = { tokens: 0, cost: null };

/**
 * A record on its way to its ledger, with its charge if that settles a reservation (`LEDGER=kv`) or differs from the record's own figures
 * (`LEDGER=object`). Ledgers do not store the charge.
 */
export type ChargedRecord = UsageRecord & { readonly charge?: Charge };

/** The name of the object that stores the record (`LEDGER=object`): that of a shard, or of its key. */
export function ledgerOfRecord({ key_id, charge }: ChargedRecord): string {
  return charge?.shard ?? key_id;
}

/** What a record charges to limits: its tokens, and its cost in 10^-9 of its currency; null if the cost is unknown. */
export function chargeOfRecord({ total_tokens, cost_nanos, currency }: UsageRecord): Charge {
  const cost = cost_nanos === null || currency === null ? null : { currency, nano: cost_nanos };
  return { tokens: total_tokens, cost };
}

/** The record as it is stored, logged and passed to hooks. */
export function withoutCharge({ charge: _, ...record }: ChargedRecord): UsageRecord {
  return record;
}

/** The records as they are stored, without what only limits need. */
export function withoutCharges(records: readonly ChargedRecord[]): readonly UsageRecord[] {
  return records.every(({ charge }) => charge === undefined) ? records : records.map(withoutCharge);
}

/** The texts of records that were made. */
const texts = new WeakMap<UsageRecord, string>();

/** The record as JSON. It is made once: the log and the ledger in KV both have it. */
export function recordText(record: UsageRecord): string {
  const known = texts.get(record);
  if (known !== undefined) return known;
  const text = JSON.stringify(record);
  texts.set(record, text);
  return text;
}

/** The record with fields that it does not have yet, behind its own. The text of those is not made again. */
export function extendRecord<Record extends UsageRecord>(record: Record, fields: RecordExtension): Record {
  const extended = { ...record, ...fields };
  const known = texts.get(record);
  if (known !== undefined) texts.set(extended, `${known.slice(0, -1)},${JSON.stringify(fields).slice(1)}`);
  return extended;
}

/** What is known of a record's prompt only once it is hashed. */
type RecordExtension = Required<Pick<UsageRecord, 'prefix'>> & Pick<UsageRecord, 'cache_saves'>;

/** A record of a user who is erased: what was used, and nothing of who used it, nor of the prompt. */
export function withoutUser({ prefix: _, cache: __, cache_saves: ___, ...record }: UsageRecord): UsageRecord {
  const attempts = record.attempts.map(
    ({ message: _, message_shown: __, cause: ___, run_id: ____, ...attempt }) => attempt,
  );
  return { ...record, ...NO_ATTRIBUTION, attempts };
}

/** Bounds of names in bytes of UTF-8, so that every record fits into KV metadata, which holds 1,024 bytes (L1). */
const MAX_MODEL_BYTES = 208;
const MAX_ASKED_BYTES = 144;
const MAX_WORD_BYTES = 64;
const MAX_CURRENCY_BYTES = 8;
/** The bound of a user, a session, an app and the value of a tag. */
export const MAX_FACT_BYTES = 64;
/** What the texts of a record may take together in KV metadata. The other fields take at most 516 bytes. */
const MAX_TEXT_BYTES = 508;
/** Bounds of the model names for a record whose texts take more, tried in order. The last one fits every record. */
const SHRUNK_NAME_BYTES = [128, 96, 64, 48, 40];
/** Attempts, and names in `dropped` and in `changed`. */
const MAX_ITEMS = 64;

/** The record with its names and numbers bounded. Every record passes here before it is stored, so all stores hold the same. */
export function boundRecord(record: UsageRecord): UsageRecord {
  const bounded = boundFields(record);
  for (const maxBytes of SHRUNK_NAME_BYTES) {
    if (textBytes(bounded) <= MAX_TEXT_BYTES) break;
    bounded.asked = boundName(bounded.asked, maxBytes);
    bounded.model = boundName(bounded.model, maxBytes);
  }
  return bounded;
}

/** Bytes that the names of a field in the compact form take with their punctuation: `"se":"",`. */
const FIELD_BYTES = 8;

/** The bytes that a record's texts take in the compact form, or an upper bound of them. */
function textBytes(record: RecordSummary): number {
  const { key_id, asked, model, error_code, finish_reason, user, session, app, team = null } = record;
  const facts = [user, session, app, team].filter((fact) => fact !== null);
  const texts = [key_id, asked, model, error_code ?? '', finish_reason ?? '', ...facts];
  return texts.reduce((sum, text) => sum + jsonBytes(text), facts.length * FIELD_BYTES);
}

function jsonBytes(text: string): number {
  return SIMPLE.test(text) ? text.length : encoder.encode(JSON.stringify(text)).length - 2;
}

function boundFields(record: UsageRecord): Writable<UsageRecord> {
  const bounded: Writable<UsageRecord> = { ...record };
  bounded.asked = boundName(record.asked, MAX_ASKED_BYTES);
  bounded.model = boundName(record.model, MAX_MODEL_BYTES);
  bounded.error_code = boundWord(record.error_code);
  bounded.finish_reason = boundWord(record.finish_reason);
  bounded.prompt_tokens = boundCount(record.prompt_tokens);
  bounded.completion_tokens = boundCount(record.completion_tokens);
  bounded.total_tokens = boundCount(record.total_tokens);
  bounded.cached_tokens = boundNullable(record.cached_tokens);
  bounded.cache_write_tokens = boundNullable(record.cache_write_tokens);
  bounded.reasoning_tokens = boundNullable(record.reasoning_tokens);
  bounded.vendor_events = boundCount(record.vendor_events);
  bounded.vendor_tokens = boundCount(record.vendor_tokens);
  bounded.first_token_ms = boundNullable(record.first_token_ms);
  bounded.total_ms = boundCount(record.total_ms);
  bounded.bytes_out = boundCount(record.bytes_out);
  bounded.cost_nanos = boundNullable(record.cost_nanos);
  bounded.currency = record.currency === null ? null : boundName(record.currency, MAX_CURRENCY_BYTES);
  if (record.cache_write_long_tokens !== undefined)
    bounded.cache_write_long_tokens = boundCount(record.cache_write_long_tokens);
  if (record.searches !== undefined) bounded.searches = boundCount(record.searches);
  bounded.attempts = record.attempts.slice(0, MAX_ITEMS).map(boundAttempt);
  if (record.dropped !== undefined) bounded.dropped = boundNames(record.dropped);
  if (record.changed !== undefined) bounded.changed = boundNames(record.changed);
  return bounded;
}

function boundAttempt(attempt: RecordedAttempt): RecordedAttempt {
  const bounded: Writable<RecordedAttempt> = { ...attempt };
  bounded.model = boundName(attempt.model, MAX_MODEL_BYTES);
  bounded.error_code = boundWord(attempt.error_code);
  return bounded;
}

function boundWord(word: string | null): string | null {
  return word === null ? null : boundName(word, MAX_WORD_BYTES);
}

function boundNames(names: readonly string[]): readonly string[] {
  return names.slice(0, MAX_ITEMS).map((name) => boundName(name, MAX_WORD_BYTES));
}

/** Upstreams may report any number, and sums may exceed the integers that a double holds exactly. */
function boundCount(count: number): number {
  return Math.max(0, Math.min(Math.round(count), Number.MAX_SAFE_INTEGER));
}

function boundNullable(count: number | null): number | null {
  return count === null ? null : boundCount(count);
}

const encoder = new TextEncoder();

/** Printable ASCII that JSON writes without escapes: nearly every name. */
const SIMPLE = /^[ !#-[\]-~]*$/;

/** Removes control characters, replaces lone surrogates, and truncates the text where its JSON would take more than `maxBytes`. */
export function boundName(text: string, maxBytes: number): string {
  if (text.length <= maxBytes && SIMPLE.test(text)) return text;
  const plain = text.toWellFormed().replace(/[^\x20-\u{10ffff}]|\x7f/gu, '');
  let bytes = 0;
  let length = 0;
  for (const character of plain) {
    // JSON escapes a quote and a backslash; nothing else that is left.
    bytes += character === '"' || character === '\\' ? 2 : encoder.encode(character).length;
    if (bytes > maxBytes) return plain.slice(0, length);
    length += character.length;
  }
  return plain;
}

const ESTIMATED_TOKENS = 1;
const ESTIMATED_COST = 2;
/** Three bits for the fault and four for the error above the flags: the place in its list plus 1, or 0 for none. */
const FAULT_UNIT = 4;
const FAULT_BITS = 7;
const ERROR_UNIT = 32;

/** Weir's code takes no room where the client's is the same. */
function encodeFault({ fault, error, error_code }: RecordSummary): number {
  const codes: readonly (string | null)[] = ERRORS_OF_PROVIDERS;
  const at = error === error_code ? -1 : codes.indexOf(error);
  return (fault === null ? 0 : FAULTS.indexOf(fault) + 1) * FAULT_UNIT + (at + 1) * ERROR_UNIT;
}

/** The compact form: short names, without nulls and without fields that follow from others. JSON omits the undefined ones. */
export function encodeRecord(record: RecordSummary): Readonly<Record<string, string | number | undefined>> {
  const { provider, model, asked, route, client, price_since } = record;
  return {
    id: record.request_id,
    t: record.time,
    k: record.key_id,
    u: record.user ?? undefined,
    se: record.session ?? undefined,
    ap: record.app ?? undefined,
    te: record.team,
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
    x:
      (record.estimated ? ESTIMATED_TOKENS : 0) +
      (record.cost_estimated ? ESTIMATED_COST : 0) +
      encodeFault(record),
    c: record.cost_nanos ?? undefined,
    cp: encodeParts(record),
    cu: record.currency ?? undefined,
    cs: COST_SOURCES.indexOf(record.cost_source),
    ps: price_since === null ? undefined : Date.parse(price_since) / 1000,
  };
}

const PARTS_RADIX = 36;
const PARTS_TEXT = /^[0-9a-z]{1,11}\.[0-9a-z]{1,11}\.[0-9a-z]{1,11}$/;

/** The parts of the cost in short; undefined where there are none, or the texts of the record leave no room. */
function encodeParts(record: RecordSummary): string | undefined {
  const { cost_parts_nanos: parts } = record;
  if (parts === undefined) return undefined;
  const text = COST_PARTS.map((part) => parts[part].toString(PARTS_RADIX)).join('.');
  return textBytes(record) + text.length + FIELD_BYTES > MAX_TEXT_BYTES ? undefined : text;
}

function decodeParts(text = ''): Pick<RecordSummary, 'cost_parts_nanos'> {
  if (!PARTS_TEXT.test(text)) return {};
  const [input = 0, cached = 0, output = 0] = text
    .split('.')
    .map((count) => boundCount(Number.parseInt(count, PARTS_RADIX)));
  return { cost_parts_nanos: { input, cached, output } };
}

/** The usual client protocol of a route, which the compact form omits. */
function usualClient(route: string): RecordSummary['client'] {
  return route === 'completions' ? 'completions' : 'chat';
}

type CacheCounts = Pick<RecordSummary, 'prompt_tokens' | 'cached_tokens' | 'cache_write_tokens'>;

/** Records of earlier versions may have more cached tokens than their prompt has tokens. They are shown with those of the prompt. */
export function withinPrompt<Record extends CacheCounts>(record: Record): Record {
  const { prompt_tokens, cached_tokens, cache_write_tokens } = record;
  const cached = Math.min(cached_tokens ?? 0, prompt_tokens);
  const cacheWrite = Math.min(cache_write_tokens ?? 0, prompt_tokens - cached);
  if (cached === (cached_tokens ?? 0) && cacheWrite === (cache_write_tokens ?? 0)) return record;
  return {
    ...record,
    cached_tokens: cached_tokens === null ? null : cached,
    cache_write_tokens: cache_write_tokens === null ? null : cacheWrite,
  };
}

/** Reads the compact form; null if the metadata is not a record. */
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
    user: readText(metadata.u) ?? null,
    session: readText(metadata.se) ?? null,
    app: readText(metadata.ap) ?? null,
    ...(typeof metadata.te === 'string' && { team: metadata.te }),
    asked: readText(metadata.a) ?? `${provider}/${model}`,
    provider,
    model,
    route,
    client: CLIENTS[readCount(metadata.d) ?? -1] ?? usualClient(route),
    status,
    error_code: readText(metadata.e) ?? null,
    error: ERRORS_OF_PROVIDERS[Math.floor(flags / ERROR_UNIT) - 1] ?? readText(metadata.e) ?? null,
    fault: FAULTS[(Math.floor(flags / FAULT_UNIT) & FAULT_BITS) - 1] ?? null,
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
    ...decodeParts(readText(metadata.cp)),
    currency: readText(metadata.cu) ?? null,
    cost_source: COST_SOURCES[readCount(metadata.cs) ?? 0] ?? 'none',
    price_since: priceSince === undefined ? null : isoTime(priceSince * 1000),
    cost_estimated: (flags & ESTIMATED_COST) !== 0,
  };
}

/** Reads a stored record; null if the value is not one. Only id and key are checked, because only Weir writes records. */
export function decodeUsageRecord(value: unknown): UsageRecord | null {
  if (!isObject(value)) return null;
  const isRecord = isRequestId(readText(value.request_id) ?? '') && readText(value.key_id) !== undefined;
  return isRecord ? (completeRecord(value) as unknown as UsageRecord) : null; // decode
}

/** Records of earlier versions have no attribution and no fault. */
export function completeRecord(stored: JsonObject): JsonObject {
  return { ...NO_ATTRIBUTION, error: stored.error_code ?? null, fault: null, ...stored };
}
