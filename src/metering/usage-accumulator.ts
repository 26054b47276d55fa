/** Counts one answer as it passes: usage reported, text seen, vendor events, finish word, the first token's time. */
import type { FinishMeaning } from '../canonical/finish-reason.ts';
import type { ChoicePart, StreamMeter, VendorTokens } from '../canonical/part.ts';
import {
  type BilledUsage,
  billedUsage,
  type CountedUsage,
  countUsage,
  mergeUsage,
  reportedSums,
  type UsageReport,
} from '../canonical/usage.ts';
import { TokenCount } from './estimate.ts';

/** What may be one: anything else does not belong in records and logs. */
const FINISH_WORD = /^[\w-]{1,32}$/;

export class UsageAccumulator implements StreamMeter {
  readonly #now: () => number;
  readonly #promptEstimate: number;
  readonly #text = new TokenCount();
  #reported: UsageReport = {};
  /** The last one named: a stream may begin with what was asked for. */
  #serviceTier: string | undefined;
  #vendorTokensAdded = 0;
  #vendorTokensTotal = 0;
  vendorEvents = 0;
  /** Choices that have their finish. */
  finishes = 0;
  /** As many had it with the last report of usage, which before the end may be of a part of the answer. */
  finishesAtUsage = 0;
  /** The upstream has made a whole answer, with an id: asked again it makes, and bills, another one. */
  isMade = false;
  /** The first finish word, as the upstream sent it. */
  finishWord: string | null = null;
  /** And what it means. */
  finishMeaning: FinishMeaning | null = null;
  /** When the first text came, in ms since the epoch. */
  firstTokenAt: number | null = null;

  /**
   * @param now the current time in ms since the epoch
   * @param promptEstimate tokens of the prompt, for an upstream that reports none
   */
  constructor(now: () => number, promptEstimate: number) {
    this.#now = now;
    this.#promptEstimate = promptEstimate;
  }

  delta(choice: ChoicePart): void {
    this.#text.add(choice.content);
    this.#text.add(choice.reasoning);
    this.#text.add(choice.refusal);
    for (const call of choice.toolCalls) {
      if (call.name !== undefined) this.#text.addCall();
      this.#text.add(call.name ?? '');
      this.#text.add(call.arguments);
    }
    if (this.firstTokenAt === null && this.#text.tokens > 0) this.firstTokenAt = this.#now();
  }

  rawText(bytes: Uint8Array, from: number, to: number): void {
    this.#text.addRaw(bytes, from, to);
    this.firstTokenAt ??= this.#now();
  }

  usage(report: UsageReport): void {
    this.#reported = mergeUsage(this.#reported, report);
    this.finishesAtUsage = this.finishes;
  }

  serviceTier(name: string): void {
    this.#serviceTier = name;
  }

  vendor(tokens: VendorTokens | null): void {
    this.vendorEvents++;
    if (tokens?.kind === 'add') this.#vendorTokensAdded += tokens.tokens;
    if (tokens?.kind === 'total') this.#vendorTokensTotal = Math.max(this.#vendorTokensTotal, tokens.tokens);
  }

  finish(word: string, meaning: FinishMeaning): void {
    this.finishes++;
    this.finishWord ??= FINISH_WORD.test(word) ? word : 'other';
    this.finishMeaning ??= meaning;
  }

  made(): void {
    this.isMade = true;
  }

  /** What was reported of the prompt and of the output; null: not reported. */
  get reported(): { readonly prompt: number | null; readonly output: number | null } {
    const { prompt, completion, total = 0 } = reportedSums(this.#reported, this.#text.tokens > 0);
    // Some count reasoning in the total alone.
    const output = completion === undefined ? null : Math.max(completion, total - (prompt ?? total));
    return { prompt: prompt ?? null, output };
  }

  /** The most tokens that the text seen can have. */
  get mostSeenTokens(): number {
    return this.#text.mostTokens;
  }

  /** Tokens of vendor events: the tasks' sum, or the total where that is higher, as it holds the tasks (V3). */
  get vendorTokens(): number {
    return Math.max(this.#vendorTokensAdded, this.#vendorTokensTotal);
  }

  /** What the upstream says the answer costs: an integer of 10^-9 US dollars, or null (P3). */
  get upstreamCost(): number | null {
    return this.#reported.cost ?? null;
  }

  countUsage(): CountedUsage {
    return countUsage(this.#reported, {
      prompt: () => this.#promptEstimate,
      completion: () => this.#text.tokens,
    });
  }

  /** The same with what is billed besides: a client's context does not hold it, and its record does (A5). */
  countBilled(): CountedUsage<BilledUsage> {
    return this.#billed(this.countUsage());
  }

  /** No more than what was reported: of an answer that failed before it began nothing else is known to be paid for. */
  countReported(): CountedUsage<BilledUsage> {
    const counted = countUsage(this.#reported, { prompt: () => 0, completion: () => 0 });
    return this.#billed({ ...counted, estimated: false });
  }

  #billed(counted: CountedUsage): CountedUsage<BilledUsage> {
    const usage = billedUsage(counted.usage, this.#reported);
    const service_tier = this.#serviceTier;
    return { ...counted, usage: service_tier === undefined ? usage : { ...usage, service_tier } };
  }
}
