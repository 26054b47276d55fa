/** Generates a few hundred sample records of the last two weeks, at the shipped prices, for the demo's dashboard (D8). */

import { cacheSaving, costOfRequest, findPrice } from '../../src/metering/pricing/cost.ts';
import { SHIPPED_PRICES } from '../../src/metering/pricing/price-book.ts';
import { encodePrefix, MAX_ENDS } from '../../src/metering/prompt-hashes.ts';
import { type Attribution, boundRecord, type UsageRecord } from '../../src/metering/record.ts';
import { HOUR_MS, isoTime, requestId } from '../../src/metering/time.ts';
import { seeded } from '../../test/random.ts';

const DAYS = 14;
/** Longer than the longest sample request, so that none ends in the future. */
const LATEST_MS = 300_000;
const BATCH = 100;

/** A key's share of the requests, and what it sends. */
export interface DemoKey {
  readonly id: string;
  readonly weight: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Who sends its requests, and for what. Absent: unknown. */
  readonly users?: readonly string[];
  readonly app?: string;
  readonly teams?: readonly string[];
}

/** Two requests of a user in the same hours are of one session. */
const SESSION_MS = 4 * HOUR_MS;

interface DemoModel {
  readonly address: string;
  readonly weight: number;
  readonly firstTokenMs: number;
  readonly tokensPerSecond: number;
  readonly isReasoning: boolean;
}

const MODELS: readonly DemoModel[] = [
  {
    address: 'deepseek/deepseek-flash',
    weight: 9,
    firstTokenMs: 620,
    tokensPerSecond: 74,
    isReasoning: true,
  },
  {
    address: 'deepseek/deepseek-v4-pro',
    weight: 3,
    firstTokenMs: 1400,
    tokensPerSecond: 38,
    isReasoning: true,
  },
  {
    address: 'mistral/mistral-small-latest',
    weight: 6,
    firstTokenMs: 310,
    tokensPerSecond: 120,
    isReasoning: false,
  },
  { address: 'openai/gpt-4o-mini', weight: 4, firstTokenMs: 450, tokensPerSecond: 95, isReasoning: false },
  {
    address: 'groq/openai/gpt-oss-20b',
    weight: 2,
    firstTokenMs: 140,
    tokensPerSecond: 480,
    isReasoning: true,
  },
  {
    address: 'compatible/qwen3-coder',
    weight: 1,
    firstTokenMs: 800,
    tokensPerSecond: 55,
    isReasoning: false,
  },
];

type Ending = Pick<UsageRecord, 'status' | 'error_code' | 'finish_reason'>;

/** Requests per thousand with each status; the others finish. */
const ENDINGS: readonly (readonly [number, Ending, part: number])[] = [
  [18, { status: 'failed', error_code: 'upstream_truncated', finish_reason: null }, 0.4],
  [9, { status: 'failed', error_code: 'upstream_overloaded', finish_reason: null }, 0],
  [6, { status: 'failed', error_code: 'rate_limited', finish_reason: null }, 0],
  [5, { status: 'timed_out', error_code: 'stream_idle_timeout', finish_reason: null }, 0.6],
  [30, { status: 'cancelled', error_code: null, finish_reason: null }, 0.5],
  [40, { status: 'finished', error_code: null, finish_reason: 'length' }, 1],
  [90, { status: 'finished', error_code: null, finish_reason: 'tool_calls' }, 0.3],
];
const FINISHED: Ending = { status: 'finished', error_code: null, finish_reason: 'stop' };

/**
 * Only the times depend on `now`. They have their own random sequence, because the number of draws for a time depends on the
 * hour. With a shared sequence, models and statuses would differ from hour to hour, and tests would fail in some hours.
 * Each key's first request is an hour old, so that the shortest range shows every key, even after a weekend.
 *
 * @param now in ms since the epoch; all records are before it
 */
export function demoRecords(
  count: number,
  keys: readonly DemoKey[],
  now: number,
  seed = 14,
  days = DAYS,
): UsageRecord[] {
  const random = seeded(seed);
  const clock = seeded(seed + 1);
  const people = seeded(seed + 2);
  const around = (value: number) => Math.max(1, Math.round(value * (0.4 + random() + random() * random())));
  return Array.from({ length: count }, (_, at) => {
    const key = keys[at] ?? weighted(keys, random());
    const model = weighted(MODELS, random());
    const ms = at < keys.length ? now - HOUR_MS : workingTime(now, days, clock);
    const { ending, part } = endingOf(random() * 1000);
    const [provider = '', ...rest] = model.address.split('/');
    const name = rest.join('/');
    const first = part === 0 ? null : around(model.firstTokenMs);
    const completion = part === 0 ? 0 : Math.ceil(around(key.completionTokens) * part);
    const prompt = part === 0 ? 0 : around(key.promptTokens);
    const cached = random() < 0.6 ? Math.floor(prompt * random() * 0.9) : 0;
    const reasoning = model.isReasoning ? Math.floor(completion * random() * 0.6) : null;
    const isBroken = ending.status !== 'finished';
    const total_ms = (first ?? 300) + Math.round((completion * 1000) / around(model.tokensPerSecond));
    const cost = costOfRequest([SHIPPED_PRICES], {
      priceIds: [provider],
      model: name,
      usage: {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt + completion,
        prompt_tokens_details: { cached_tokens: cached },
        ...(reasoning !== null && { completion_tokens_details: { reasoning_tokens: reasoning } }),
      },
      upstreamCost: null,
      endMs: ms + total_ms,
    });
    return boundRecord({
      request_id: requestId(ms, randomId(random)),
      time: isoTime(ms),
      ended: isoTime(ms + total_ms),
      key_id: key.id,
      asked: model.address,
      provider,
      model: name,
      route: 'chat',
      client: 'chat',
      ...attributionOf(key, ms, people),
      ...ending,
      error: ending.error_code,
      fault: ending.error_code === null ? null : 'provider',
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      cached_tokens: cached,
      cache_write_tokens: null,
      reasoning_tokens: reasoning,
      vendor_events: 0,
      vendor_tokens: 0,
      first_token_ms: first,
      total_ms,
      bytes_out: completion * 210,
      estimated: isBroken && completion > 0,
      cost_nanos: cost?.nano ?? null,
      ...(cost?.parts !== undefined && { cost_parts_nanos: cost.parts }),
      currency: cost?.currency ?? null,
      cost_source: cost === null ? 'none' : 'table',
      price_since: cost === null ? null : isoTime(Date.parse(cost.priceSince ?? '')),
      cost_estimated: cost !== null && isBroken && completion > 0,
      attempts: [
        {
          provider,
          model: name,
          status: ending.error_code === 'rate_limited' ? 429 : part === 0 ? 503 : 200,
          error_code: ending.error_code,
          ms: total_ms,
        },
      ],
    });
  });
}

/** Some requests name no user. */
function attributionOf(
  { id, users = [], app, teams }: DemoKey,
  ms: number,
  random: () => number,
): Attribution {
  const user = users[Math.floor(random() * (users.length + 0.3))] ?? null;
  const team = teams?.[Math.floor(random() * teams.length)];
  const period = Math.floor(ms / SESSION_MS).toString(16);
  return {
    user,
    session: user === null ? null : `${id.slice(0, 8)}-${period}-${user.split('@')[0]}`,
    app: app ?? null,
    tags: team === undefined ? {} : { team, env: random() < 0.8 ? 'prod' : 'staging' },
  };
}

export const DEMO_SESSION = 'd5954b13-5cdf-48d4-863a-d52907ae1161';
const SESSION_REQUESTS = 20;
const SESSION_GAP_MS = 45_000;
/** The request of the session from which on it has one tool more. */
const TOOLS_AT = 14;
/** The request of the session at which its first target is down. */
const FALLBACK_AT = 11;

/**
 * One session of a coding agent: its prompt grows with each request and is mostly cached. The cache breaks twice: one request falls back to
 * another target, whose cache is cold, and the next returns to the first; later a server of tools connects, and the tools change.
 */
export function demoSession(keyId: string, now: number, seed = 27): UsageRecord[] {
  const random = seeded(seed);
  const begin = now - HOUR_MS - SESSION_REQUESTS * SESSION_GAP_MS;
  return Array.from({ length: SESSION_REQUESTS }, (_, at) => {
    const isFallback = at === FALLBACK_AT;
    const provider = isFallback ? 'mistral' : 'deepseek';
    const model = isFallback ? 'mistral-small-latest' : 'deepseek-flash';
    const ms = begin + at * SESSION_GAP_MS + Math.floor(random() * 20_000);
    const prompt = 9000 + at * 2400 + Math.floor(random() * 800);
    const completion = 180 + Math.floor(random() * 700);
    const isCold = at === 0 || isFallback || at === TOOLS_AT;
    const cached = isCold ? 0 : Math.floor((prompt - 2600) / 64) * 64;
    const total_ms = 700 + completion * 13;
    const usage = {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: cached },
    };
    const request = { priceIds: [provider], model, usage, upstreamCost: null, endMs: ms + total_ms };
    const cost = costOfRequest([SHIPPED_PRICES], request);
    const price = findPrice([SHIPPED_PRICES], [provider], model, ms);
    const down = {
      provider: 'deepseek',
      model: 'deepseek-flash',
      status: 503,
      error_code: 'upstream_overloaded',
      ms: 240,
    };
    const served = { provider, model, status: 200, error_code: null, ms: total_ms };
    return boundRecord({
      request_id: requestId(ms, randomId(random)),
      time: isoTime(ms),
      ended: isoTime(ms + total_ms),
      key_id: keyId,
      asked: 'coder',
      provider,
      model,
      route: 'chat',
      client: 'messages',
      user: 'ada@example.com',
      session: DEMO_SESSION,
      app: 'claude-cli',
      tags: { team: 'search', env: 'prod' },
      status: 'finished',
      error: null,
      fault: null,
      error_code: null,
      finish_reason: at === SESSION_REQUESTS - 1 ? 'stop' : 'tool_calls',
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      cached_tokens: cached,
      cache_write_tokens: null,
      reasoning_tokens: isFallback ? null : Math.floor(completion * 0.4),
      vendor_events: 0,
      vendor_tokens: 0,
      first_token_ms: isFallback ? 1900 : 420 + Math.floor(random() * 300),
      total_ms,
      bytes_out: completion * 210,
      estimated: false,
      cost_nanos: cost?.nano ?? null,
      ...(cost?.parts !== undefined && { cost_parts_nanos: cost.parts }),
      currency: cost?.currency ?? null,
      cost_source: cost === null ? 'none' : 'table',
      price_since: cost === null ? null : isoTime(Date.parse(cost.priceSince ?? '')),
      cost_estimated: false,
      attempts: isFallback ? [down, served] : [served],
      prefix: encodePrefix({
        ...{ keyId: 'de', system: SAME, settings: SAME, first: SAME, turns: at + 1 },
        target: isFallback ? OTHER : SAME,
        tools: at >= TOOLS_AT ? OTHER : SAME,
        ends: Array.from({ length: Math.min(at + 1, MAX_ENDS) }, (_, i) => endOfTurn(at - i)).reverse(),
      }),
      cache_saves: price === null ? 0 : (cacheSaving(price, prompt, ms) ?? 0),
    });
  });
}

/** Hashes of the parts of a prompt, as they could be. */
const SAME = 'a'.repeat(12);
const OTHER = 'b'.repeat(12);

function endOfTurn(turn: number): string {
  return turn.toString(16).padStart(12, '0');
}

/** Posts records to a gateway that runs `filled-worker.ts`. */
export async function fill(gateway: string, records: readonly UsageRecord[]): Promise<void> {
  for (let at = 0; at < records.length; at += BATCH) {
    const body = JSON.stringify(records.slice(at, at + BATCH));
    const response = await fetch(`${gateway}/records-of-before`, { method: 'POST', body });
    if (!response.ok)
      throw new Error(`The records were rejected: ${response.status} ${await response.text()}`);
  }
}

function weighted<Item extends { readonly weight: number }>(items: readonly Item[], at: number): Item {
  let left = at * items.reduce((sum, { weight }) => sum + weight, 0);
  const found = items.find(({ weight }) => {
    left -= weight;
    return left < 0;
  });
  const item = found ?? items[0];
  if (item === undefined) throw new Error('The list is empty');
  return item;
}

function endingOf(at: number): { readonly ending: Ending; readonly part: number } {
  let left = at;
  for (const [share, ending, part] of ENDINGS) {
    left -= share;
    if (left < 0) return { ending, part };
  }
  return { ending: FINISHED, part: 1 };
}

/** More requests by day than by night, and few on weekends. */
function workingTime(now: number, days: number, random: () => number): number {
  for (;;) {
    const ms = Math.floor(now - LATEST_MS - random() * (days * 24 * HOUR_MS));
    const date = new Date(ms);
    const isWeekend = date.getUTCDay() % 6 === 0;
    const byHour = 0.25 + 0.75 * Math.max(0, Math.sin(((date.getUTCHours() - 5) / 24) * 2 * Math.PI));
    if (random() < byHour * (isWeekend ? 0.3 : 1)) return ms;
  }
}

function randomId(random: () => number): string {
  const hex = (digits: number) =>
    Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join('');
  return `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`;
}
