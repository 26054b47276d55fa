/** Why a request was not read from the prompt cache: compares it with the earlier requests of its session, and counts what was lost. */
import { readArray } from '../shared/json.ts';
import { promptCacheOf } from './pricing/prompt-caches.ts';
import { decodePrefix, type PromptPrefix } from './prompt-hashes.ts';
import type { CacheReport, PrefixChange, TargetReason, UsageRecord } from './record.ts';

/** An earlier request of a session, as it is compared with later ones. It holds no text. */
export interface EarlierRequest {
  readonly id: string;
  readonly prefix: string;
  readonly provider: string;
  readonly model: string;
  /** The requested model. */
  readonly asked: string;
  /** When its output began, or else when it ended: from then on its prompt can be in the cache. In ms since the epoch. */
  readonly cachedAt: number;
  readonly endedAt: number;
  readonly promptTokens: number;
  /** The provider keeps it for longer than its default time. */
  readonly isLong: boolean;
  readonly reason: TargetReason | null;
}

/** Requests that are kept of a session. Sub-agents and auxiliary calls of a client may have the session's id. */
const MAX_EARLIER = 8;

/** What is compared before a request is sent. */
export interface SentPrefix
  extends Pick<EarlierRequest, 'prefix' | 'provider' | 'model' | 'asked' | 'reason'> {
  /** When it arrived, in ms since the epoch. */
  readonly at: number;
}

interface Comparison extends PrefixChange {
  /** Null where there is none. */
  readonly earlier: EarlierRequest | null;
}

/** Compares a request with the earlier ones of its session, of which one may be it itself. */
export function comparePrefix(sent: SentPrefix, earlier: readonly EarlierRequest[]): Comparison {
  const prefix = decodePrefix(sent.prefix);
  const settled = earlier
    .filter(({ cachedAt }) => cachedAt <= sent.at)
    .flatMap((request) => {
      const decoded = decodePrefix(request.prefix);
      return decoded === null ? [] : [{ request, prefix: decoded }];
    });
  if (prefix === null) return { cause: 'unknown', earlier: null };
  const sameKey = settled.filter((one) => one.prefix.keyId === prefix.keyId);
  if (sameKey.length === 0) return { cause: settled.length === 0 ? 'first' : 'unknown', earlier: null };
  const related = sameKey.filter((one) => one.prefix.first === prefix.first);
  const last = related.toSorted((a, b) => b.request.cachedAt - a.request.cachedAt)[0];
  if (last === undefined) return { cause: 'first', earlier: null };
  const sameTarget = related.filter(
    (one) => isSameModel(one.request, sent) && one.prefix.target === prefix.target,
  );
  const found = longest(sameTarget, prefix);
  if (found === null) return { ...otherTarget(sent, last.request), earlier: last.request };
  return { ...changeOf(found.prefix, prefix), earlier: found.request };
}

function isSameModel(a: Pick<SentPrefix, 'provider' | 'model'>, b: typeof a): boolean {
  return a.provider === b.provider && a.model === b.model;
}

/** Another account or API of the same provider has its own cache, too: that is not Weir's choice between targets. */
function otherTarget(sent: SentPrefix, earlier: EarlierRequest): PrefixChange {
  const cause = sent.model === earlier.model ? 'target' : 'model';
  if (sent.asked !== earlier.asked) return { cause };
  const by = sent.reason ?? earlier.reason ?? (isSameModel(sent, earlier) ? null : 'weight');
  return by === null ? { cause } : { cause, by };
}

interface EarlierCandidate {
  readonly request: EarlierRequest;
  readonly prefix: PromptPrefix;
}

/** The one with the longest conversation in common; of several, one with the same parts before it; of several, the last. */
function longest(candidates: readonly EarlierCandidate[], prefix: PromptPrefix): EarlierCandidate | null {
  const rank = ({ prefix: other, request }: EarlierCandidate) => [
    commonTurns(other, prefix),
    other.tools === prefix.tools && other.system === prefix.system && other.settings === prefix.settings
      ? 1
      : 0,
    request.cachedAt,
  ];
  const ranked = candidates
    .map((candidate) => ({ candidate, rank: rank(candidate) }))
    .sort((a, b) => {
      const at = a.rank.findIndex((value, i) => value !== b.rank[i]);
      return at < 0 ? 0 : (b.rank[at] ?? 0) - (a.rank[at] ?? 0);
    });
  return ranked[0]?.candidate ?? null;
}

/** The hash of a conversation up to the end of a turn; undefined: it is not among the last ones. */
function endOf({ turns, ends }: PromptPrefix, turn: number): string | undefined {
  return ends[ends.length - 1 - (turns - turn)];
}

/** The number of the last turn up to which both are known to be the same; 0: none. */
function commonTurns(a: PromptPrefix, b: PromptPrefix): number {
  const last = Math.min(a.turns, b.turns);
  for (let turn = last; turn > 0; turn--) {
    const end = endOf(a, turn);
    const other = endOf(b, turn);
    if (end === undefined || other === undefined) return 0;
    if (end === other) return turn;
  }
  return 0;
}

function changeOf(earlier: PromptPrefix, later: PromptPrefix): PrefixChange {
  if (earlier.settings !== later.settings) return { cause: 'settings' };
  if (earlier.tools !== later.tools) return { cause: 'tools' };
  if (earlier.system !== later.system) return { cause: 'system' };
  const last = Math.min(earlier.turns, later.turns);
  const isKnown = last === 0 || (endOf(earlier, last) !== undefined && endOf(later, last) !== undefined);
  if (!isKnown) return { cause: 'unknown' };
  const common = commonTurns(earlier, later);
  // A client that goes back to an earlier turn continues the same beginning.
  if (common === last) return { cause: 'none' };
  const isSeen = common > 0 || earlier.ends.length === earlier.turns;
  return isSeen ? { cause: 'history', at: earlier.turns - common - 1 } : { cause: 'history' };
}

/** A prompt of which less than this was read was not read from the cache. */
const READ_SHARE = 0.5;

/** A request that can be compared; null: it has no prefix, or nothing of its prompt is known. */
function earlierOf(record: UsageRecord): EarlierRequest | null {
  const { prefix, prompt_tokens, time, first_token_ms, attempts } = record;
  if (prefix === undefined || prompt_tokens === 0) return null;
  const startedAt = Date.parse(time);
  const endedAt = Date.parse(record.ended);
  return {
    id: record.request_id,
    prefix,
    provider: record.provider,
    model: record.model,
    asked: record.asked,
    cachedAt: first_token_ms === null ? endedAt : Math.min(startedAt + first_token_ms, endedAt),
    endedAt,
    promptTokens: prompt_tokens,
    isLong: (record.cache_write_long_tokens ?? 0) > 0,
    reason: reasonOf(attempts),
  };
}

function reasonOf(attempts: UsageRecord['attempts']): TargetReason | null {
  const others = readArray(attempts).length > 1 ? attempts.slice(0, -1) : [];
  if (others.some(({ ms }) => ms !== null)) return 'fallback';
  return others.some(({ error_code }) => error_code === 'circuit_open') ? 'circuit' : null;
}

/** Compares a request with the earlier ones of its session. Null: it cannot be compared. */
export function compareRecord(record: UsageRecord, earlier: readonly EarlierRequest[]): CacheReport | null {
  const current = earlierOf(record);
  if (current === null) return null;
  const sent = { ...current, at: Date.parse(record.time) };
  const others = earlier.filter(({ id }) => id !== current.id);
  const { earlier: compared, ...change } = comparePrefix(sent, others);
  const cached = record.cached_tokens;
  if (compared === null || change.cause === 'unknown') return { ...change, lost_tokens: 0 };
  const facts = promptCacheOf(record.provider, record.model);
  // A request cannot read more than its own prompt.
  const readable = Math.min(compared.promptTokens, record.prompt_tokens);
  const isCacheable = facts !== null && readable >= facts.minTokens;
  const lost = cached === null || !isCacheable ? 0 : Math.max(0, readable - cached);
  if (change.cause !== 'none') return withLoss(record, change, lost);
  if (cached === null || record.estimated) return { cause: 'unknown', lost_tokens: 0 };
  if (cached >= readable * READ_SHARE) return { cause: 'none', lost_tokens: 0 };
  if (facts === null) return { cause: 'unknown', lost_tokens: 0 };
  if (!isCacheable) return { cause: 'none', lost_tokens: 0 };
  const keptMs = (compared.isLong ? facts.longMs : undefined) ?? facts.keptMs;
  if (keptMs === undefined) return { cause: 'unknown', lost_tokens: 0 };
  const cause = sent.at - compared.endedAt > keptMs ? 'expired' : 'provider';
  return withLoss(record, { cause }, lost);
}

const MILLION = 1_000_000;

function withLoss({ cache_saves }: UsageRecord, change: PrefixChange, lost: number): CacheReport {
  const cost = cache_saves === undefined ? {} : { lost_nanos: Math.round((lost * cache_saves) / MILLION) };
  return { ...change, lost_tokens: lost, ...cost };
}

/**
 * The requests to keep of a session after one more. Those of one conversation make room first, so that many steps of one do not displace
 * the others.
 */
export function withEarlier(
  earlier: readonly EarlierRequest[],
  record: UsageRecord,
): readonly EarlierRequest[] {
  const current = earlierOf(record);
  if (current === null) return earlier;
  const all = [...earlier.filter(({ id }) => id !== current.id), current];
  if (all.length <= MAX_EARLIER) return all;
  const groups = [...Map.groupBy(all, conversationOf).values()];
  const largest = Math.max(...groups.map(({ length }) => length));
  const dropped = groups.find(({ length }) => length === largest)?.[0];
  return all.filter((request) => request !== dropped);
}

function conversationOf({ prefix, provider, model }: EarlierRequest): string {
  const decoded = decodePrefix(prefix);
  return [decoded?.target, decoded?.tools, decoded?.system, decoded?.first, provider, model].join(' ');
}

/** Compares the requests of one session, in the order of their ends. @returns the reports by request id */
export function compareSession(records: readonly UsageRecord[]): ReadonlyMap<string, CacheReport> {
  const reports = new Map<string, CacheReport>();
  let earlier: readonly EarlierRequest[] = [];
  for (const record of records.toSorted((a, b) => (endOfRecord(a) < endOfRecord(b) ? -1 : 1))) {
    const report = compareRecord(record, earlier);
    if (report !== null) reports.set(record.request_id, report);
    earlier = withEarlier(earlier, record);
  }
  return reports;
}

function endOfRecord({ ended, request_id }: UsageRecord): string {
  return `${ended} ${request_id}`;
}

/** The header's value: `none`, `tools`, `history;at=6`, `model;by=fallback`. */
export function writeChange({ cause, at, by }: PrefixChange): string {
  return [cause, ...(at === undefined ? [] : [`at=${at}`]), ...(by === undefined ? [] : [`by=${by}`])].join(
    ';',
  );
}
