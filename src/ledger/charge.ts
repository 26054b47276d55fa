/** What a request is charged: what its providers reported, and a bound or an estimate of what they did not report (G3). */
import type { HighestPrice } from '../metering/pricing/highest-price.ts';
import type { PriceTable } from '../metering/pricing/price.ts';
import { type Charge, chargeOfRecord, type UsageRecord } from '../metering/record.ts';
import {
  type AttemptMeter,
  costOfAttempt,
  costOfPartlyReported,
  type ReceivedOutput,
  type Unreported,
} from '../metering/request-meter.ts';
import type { UpperBound } from './limits/allowance.ts';
import { clampAmount, maxCost } from './limits/reservations.ts';
import { LIKELY_SEARCHED_TOKENS, MAX_PROMPT_TOKENS } from './limits/usage-upper-bound.ts';

/** One attempt, as it was reserved. */
export interface ChargeBound {
  readonly promptTokens: number;
  /** Of all choices. */
  readonly outputTokens: number;
  /** Of all choices, after this many ms. */
  readonly maxOutputAfter: (ms: number) => number;
  /** Of a stream of which this was received. */
  readonly maxOutputOf: (provider: string, received: ReceivedOutput) => number;
  readonly searches: number;
  readonly price: HighestPrice | null;
  /** Null: the output is reserved whole. */
  readonly slices: ReservedSlices | null;
  /** The providers that go on, and bill, when the connection closes. */
  readonly goingOn: ReadonlySet<string>;
}

/** What a stream has reserved so far, for all of its attempts. */
export interface ReservedSlices {
  readonly sliceTokens: number;
  /** Output tokens. */
  readonly reserved: number;
  /** Output tokens that may have been written unseen. */
  readonly hiddenTokens: number;
  readonly searches: number;
  /** With the prompts and the searches. */
  readonly all: UpperBound;
}

interface Amount {
  readonly tokens: number;
  /** 10^-9 of the currency. */
  readonly nano: number;
}

interface AttemptCharge extends Amount {
  /** The part that is surely used. It counts whatever was reserved. */
  readonly seen: Amount;
  /** Null where the price is not known. */
  readonly currency: string | null;
  readonly isUnreported: boolean;
}

/** @param attempts the attempts that the record sums up */
export function chargeOf(
  record: UsageRecord,
  attempts: readonly AttemptMeter[],
  bound: ChargeBound,
  table: PriceTable,
): Charge {
  const ofRecord = chargeOfRecord(record);
  if (attempts.every(({ unreported }) => unreported === null)) return ofRecord;
  const endMs = Date.parse(record.ended);
  const charges = attempts.map((attempt) => attemptCharge(attempt, bound, table, endMs));
  const currency = bound.price?.currency ?? null;
  const isPriced = currency !== null && charges.every((charge) => charge.currency === currency);
  const reported = sumOf(charges.filter(({ isUnreported }) => !isUnreported));
  const all = limitTo(bound.slices?.all ?? null, sumOf(charges), sumOf(charges.map(({ seen }) => seen)));
  return {
    tokens: all.tokens,
    cost: isPriced ? { currency, nano: all.nano } : ofRecord.cost,
    unreported: {
      tokens: all.tokens - reported.tokens,
      nano: isPriced ? all.nano - reported.nano : (ofRecord.cost?.nano ?? 0),
    },
    recordedTokens: record.total_tokens,
  };
}

/** A stream is charged at most what it reserved, or what was seen if that is more. @param reserved null: nothing limits it */
function limitTo(reserved: UpperBound | null, all: Amount, seen: Amount): Amount {
  if (reserved === null) return all;
  return {
    tokens: Math.max(seen.tokens, Math.min(all.tokens, reserved.tokens)),
    nano: Math.max(seen.nano, Math.min(all.nano, reserved.cost)),
  };
}

function attemptCharge(
  attempt: AttemptMeter,
  bound: ChargeBound,
  table: PriceTable,
  endMs: number,
): AttemptCharge {
  const { unreported, traits } = attempt;
  const { price, slices, goingOn } = bound;
  if (unreported === null) {
    const { usage } = attempt.countUsage();
    const cost = costOfAttempt(attempt, usage, table, endMs);
    const isUsed = usage.total_tokens > 0 || cost !== null;
    const currency = (isUsed ? cost : price)?.currency ?? null;
    const amount = { tokens: usage.total_tokens, nano: cost?.nano ?? 0 };
    return { ...amount, seen: amount, currency, isUnreported: false };
  }
  const provider = traits.target.provider.id;
  const { received } = unreported;
  const costOfUse = (use: Use) => costOf(attempt, use, bound, table, endMs);
  const amounts =
    slices === null || received === null || goingOn.has(provider)
      ? boundOf(attempt, unreported, bound, costOfUse)
      : estimateOf(attempt, unreported, received, bound, slices, costOfUse);
  return { ...amounts, currency: price?.currency ?? null, isUnreported: true };
}

interface Use {
  /** As reported, each kind at its own price; 0: it was not reported. */
  readonly reportedPrompt: number;
  readonly morePromptTokens: number;
  readonly outputTokens: number;
  readonly searches: number;
  /** What was not reported has the highest price, as it was reserved, or that of the model that was called. */
  readonly price: 'highest' | 'own';
}

/** In 10^-9 of the currency. */
function costOf(
  attempt: AttemptMeter,
  { reportedPrompt, price, ...rest }: Use,
  { price: highest }: ChargeBound,
  table: PriceTable,
  endMs: number,
): number {
  const isBound = price === 'highest';
  const known = isBound ? NOTHING_MORE : rest;
  const own =
    isBound && reportedPrompt === 0
      ? null
      : costOfPartlyReported(attempt, { ...known, isBound }, table, endMs);
  const isOwn = own !== null && own.currency === highest?.currency;
  const { morePromptTokens, outputTokens, searches } = rest;
  if (!isOwn) return maxCost(highest, reportedPrompt + morePromptTokens, outputTokens, searches);
  return isBound ? own.nano + maxCost(highest, morePromptTokens, outputTokens, searches) : own.nano;
}

const NOTHING_MORE = { morePromptTokens: 0, outputTokens: 0, searches: 0 };

type CostOf = (use: Use) => number;

/** What may be billed at most. */
function boundOf(
  attempt: AttemptMeter,
  unreported: Unreported,
  bound: ChargeBound,
  costOfUse: CostOf,
): Pick<AttemptCharge, 'tokens' | 'nano' | 'seen'> {
  const { promptTokens: reportedPrompt, searches } = unreported;
  const outputTokens = outputOf(unreported, attempt.traits.target.provider.id, bound);
  // Where the provider may read more into the prompt during the response, the reported one is not final.
  const isOpen = bound.promptTokens >= MAX_PROMPT_TOKENS;
  const isFinal = reportedPrompt !== null && (!isOpen || reportedPrompt >= bound.promptTokens);
  const prompt = isFinal
    ? { reportedPrompt, morePromptTokens: 0 }
    : { reportedPrompt: 0, morePromptTokens: bound.promptTokens };
  const nano = costOfUse({
    ...{ ...prompt, outputTokens, searches: Math.max(searches, bound.searches), price: 'highest' },
  });
  const amount = { tokens: prompt.reportedPrompt + prompt.morePromptTokens + outputTokens, nano };
  return { ...amount, seen: amount };
}

function outputOf(unreported: Unreported, provider: string, bound: ChargeBound): number {
  const { outputTokens, maxOutputTokens, minOutputTokens, unansweredMs, received } = unreported;
  if (outputTokens !== null) return outputTokens;
  if (unansweredMs !== null) return bound.maxOutputAfter(unansweredMs);
  const ofStream = received === null ? bound.outputTokens : bound.maxOutputOf(provider, received);
  return Math.max(minOutputTokens, Math.min(maxOutputTokens ?? ofStream, ofStream));
}

/** What may be on its way when a stream ends, as a part of a slice. */
const UNRECEIVED_PART = 0.5;
/** What may be on its way, or was estimated too low, as a part of what was seen. */
const UNCOUNTED_PART = 0.1;

/** What was received of a stream whose provider stops when it ends, and what may be on its way, within what is reserved. */
function estimateOf(
  attempt: AttemptMeter,
  unreported: Unreported,
  received: ReceivedOutput,
  { promptTokens: reserved, maxOutputAfter }: ChargeBound,
  slices: ReservedSlices,
  costOfUse: CostOf,
): Pick<AttemptCharge, 'tokens' | 'nano' | 'seen'> {
  const { promptTokens: reported, outputTokens, minOutputTokens, maxOutputTokens } = unreported;
  const { unansweredMs, searches } = unreported;
  const unreceived = slices.sliceTokens * UNRECEIVED_PART;
  const likely =
    unansweredMs === null ? received.tokens + slices.hiddenTokens + unreceived : maxOutputAfter(unansweredMs);
  const most = Math.ceil(Math.min(likely, maxOutputTokens ?? likely, slices.reserved));
  const visible = outputTokens ?? Math.max(minOutputTokens, received.tokens);
  /** @param prompt what is counted of a prompt that was not reported */
  const amountOf = (prompt: number, output: number, searched: number, price: Use['price']): Amount => {
    const morePromptTokens = prompt + LIKELY_SEARCHED_TOKENS * searched;
    // Not every protocol shows them.
    const billed = searches > 0 ? searches : searched;
    const use = { reportedPrompt: reported ?? 0, morePromptTokens, outputTokens: output, searches: billed };
    return { tokens: use.reportedPrompt + morePromptTokens + output, nano: costOfUse({ ...use, price }) };
  };
  const searched = Math.max(searches, slices.searches);
  if (reported === null) {
    const estimated = attempt.countUsage().usage.prompt_tokens;
    return {
      ...amountOf(reserved, outputTokens ?? Math.max(visible, most), searched, 'highest'),
      seen: amountOf(estimated, visible, searches, 'own'),
    };
  }
  // The reserved slices are in place of a prompt that is reserved in excess.
  const hidden = Math.max(0, Math.min(slices.hiddenTokens, slices.reserved - received.tokens));
  const written = outputTokens ?? Math.max(visible, received.tokens + hidden);
  const seen = amountOf(0, written, searches, 'own');
  const nothing = amountOf(0, 0, 0, 'own');
  const ofSlices = amountOf(0, slices.reserved, 0, 'own');
  const all = amountOf(0, outputTokens ?? written + unreceived, searched, 'own');
  const within = (kind: keyof Amount, most: number) => Math.ceil(Math.min(all[kind], most));
  const uncounted = (kind: keyof Amount) => within(kind, seen[kind] * (1 + UNCOUNTED_PART));
  const limited = (kind: keyof Amount) =>
    slices.searches > 0 ? all[kind] : Math.max(uncounted(kind), within(kind, ofSlices[kind] - nothing[kind]));
  return {
    ...{ tokens: limited('tokens'), nano: limited('nano') },
    seen: { tokens: uncounted('tokens'), nano: uncounted('nano') },
  };
}

function sumOf(amounts: readonly Amount[]): Amount {
  return {
    tokens: clampAmount(amounts.reduce((sum, { tokens }) => sum + tokens, 0)),
    nano: clampAmount(amounts.reduce((sum, { nano }) => sum + nano, 0)),
  };
}
