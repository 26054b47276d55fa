/**
 * Random streams of a key with several budgets, against a model of what their provider bills: with known beginnings of prompts, slices,
 * calls whose answers are lost, top-ups, changes of the limits, days and months that end, and requests that never settle.
 *
 * RUNS=20000 runs longer. SEED=7 RUNS=1 repeats a run.
 */
import { expect, test } from 'vitest';
import { type Budget, budgetUses, periodName } from '../../../src/auth/key-limits.ts';
import { readLimitStatus, storedLimits } from '../../../src/ledger/limits/limit-tables.ts';
import { expire, type ReserveRequest, settle } from '../../../src/ledger/limits/reservations.ts';
import { addToBudget } from '../../../src/ledger/limits/top-ups.ts';
import { seeded } from '../../random.ts';
import { repeatable, runsOf, SEED } from '../../random-run.ts';
import { MemorySql, MINUTE, reserve, used } from './memory-sql.ts';

const RUNS = runsOf(10, 60);
const STEPS = 60;
const SLICE = 2000;
const OUTPUT_LIMIT = 9000;
const START = Date.UTC(2026, 10, 29, 20);
const EXPIRES_MS = 11 * MINUTE;

interface Stream {
  readonly request: ReserveRequest;
  readonly hash: string;
  /** Of the prompt. */
  readonly bytes: number;
  readonly day: number;
  /** Tokens as the provider counts them. */
  readonly prompt: number;
  /** The prompt beyond what was reserved for it. */
  readonly promptOver: number;
  readonly isSliced: boolean;
  readonly until: number;
  output: number;
  /** What may have been written without a reservation, at most a slice. */
  outputOver: number;
  slices: number;
  isRunning: boolean;
  /** What the provider bills. */
  billed: number;
}

class Run {
  readonly #random: () => number;
  readonly sql: MemorySql;
  now = START;
  #mode: 'hard' | 'running' = 'hard';
  readonly #streams: Stream[] = [];
  /** The conversation: what was counted of its beginnings. */
  #counted: { readonly hash: string; readonly tokens: number; readonly bytes: number } | null = null;
  #topUps = 0;

  constructor(seed: number) {
    this.#random = seeded(seed);
    this.sql = new MemorySql();
    this.#limit();
  }

  #upTo(max: number): number {
    return Math.floor(this.#random() * (max + 1));
  }

  #is(chance: number): boolean {
    return this.#random() < chance;
  }

  /** New limits, above what is spent and reserved: what runs keeps its reservation. */
  #limit(): void {
    const mode = this.#is(0.5) ? 'hard' : 'running';
    this.#mode = mode;
    const taken = budgetUses(readLimitStatus(this.sql, this.now)).map(({ use }) => use.spent + use.reserved);
    const tokens = Math.max(0, ...taken) + 5000 + this.#upTo(40_000);
    const month = { tokens: tokens * (1 + this.#upTo(2)), per: 'month', mode };
    const week = { ...month, tokens: tokens * (1 + this.#upTo(1)), per: 'week' };
    this.sql.limit({ budget: [{ tokens, per: 'day', mode }, week, month] });
  }

  step(): void {
    const running = this.#streams.filter(({ isRunning }) => isRunning);
    const stream = running[this.#upTo(running.length - 1)];
    const dice = this.#random();
    if (dice < 0.07) this.#wait();
    else if (dice < 0.1) this.#topUp();
    else if (dice < 0.14) this.#limit();
    else if (dice < 0.4 || stream === undefined) this.#begin();
    else if (dice < 0.85) this.#write(stream);
    else this.#settle(stream);
    this.#check();
  }

  /** A request with a known beginning, whose rest has at most a token for each byte. */
  #begin(): void {
    const bytes = (this.#counted?.bytes ?? 0) + 100 + this.#upTo(3000);
    const newBytes = bytes - (this.#counted?.bytes ?? 0);
    const prompt = (this.#counted?.tokens ?? 0) + Math.ceil(newBytes * (0.1 + this.#random() * 0.9));
    const known = this.#counted;
    const id = `r${this.#streams.length}`;
    const request: ReserveRequest = {
      id,
      promptTokens: bytes,
      prompts: [
        {
          ...{ tokens: bytes, likelyTokens: Math.ceil(bytes / 2) },
          beginnings:
            known === null
              ? []
              : [{ hash: known.hash, more: { tokens: newBytes, likelyTokens: Math.ceil(newBytes / 2) } }],
        },
      ],
      estimatedPromptTokens: prompt,
      outputTokens: OUTPUT_LIMIT,
      choices: 1,
      price: null,
      expiresAfterMs: EXPIRES_MS,
      likely: { promptTokens: Math.ceil(bytes / 2), outputTokens: SLICE },
    };
    const reserved = this.#reserve(request);
    if (reserved.kind !== 'reserved') return;
    expect(reserved.isSliced === true).toBe(this.#mode === 'running');
    const { promptTokens = 0 } = reserved;
    if (this.#mode === 'hard') expect(promptTokens).toBeGreaterThanOrEqual(prompt);
    const hash = (this.#streams.length * 7919 + 1).toString(16).padStart(16, '0');
    const { prompts: _, ...again } = request;
    this.#streams.push({
      request: { ...again, promptTokens, likely: { promptTokens, outputTokens: SLICE } },
      ...{ hash, bytes, day: this.now, prompt, promptOver: Math.max(0, prompt - promptTokens) },
      ...{ isSliced: reserved.isSliced === true, until: this.now + EXPIRES_MS },
      ...{ output: 0, outputOver: 0, slices: 1, isRunning: true, billed: prompt },
    });
  }

  /** A call whose answer may be lost is repeated. */
  #reserve(request: ReserveRequest) {
    if (this.#is(0.2)) reserve(this.sql, request, this.now);
    return reserve(this.sql, request, this.now);
  }

  /** The provider writes up to a slice, while the next one is asked for. */
  #write(stream: Stream): void {
    const wanted = Math.min(OUTPUT_LIMIT, stream.output + this.#upTo(SLICE));
    if (!stream.isSliced) {
      stream.output = wanted;
      stream.billed = stream.prompt + stream.output;
      return;
    }
    let isLast = false;
    while (!isLast && wanted > (stream.slices - 0.5) * SLICE && stream.slices * SLICE < OUTPUT_LIMIT) {
      const { request } = stream;
      const likely = { promptTokens: request.promptTokens, outputTokens: (stream.slices + 1) * SLICE };
      isLast = this.#reserve({ ...request, likely }).kind === 'refused';
      if (!isLast) stream.slices++;
    }
    const reserved = Math.min(OUTPUT_LIMIT, stream.slices * SLICE);
    // What comes before the stream is ended: an event of any size, up to a slice.
    stream.output = isLast ? Math.min(wanted, reserved + SLICE) : wanted;
    stream.outputOver = Math.max(0, stream.output - reserved);
    stream.billed = stream.prompt + stream.output;
    if (isLast && stream.output >= reserved) this.#settle(stream);
  }

  /** The stream ends by itself, or its client has left and its provider stops. */
  #settle(stream: Stream): void {
    stream.isRunning = false;
    const { hash, prompt, billed, bytes } = stream;
    const charge = { ...used(billed), counted: { hash, tokens: prompt } };
    settle(this.sql, stream.request.id, charge, this.now);
    if (this.#is(0.2)) settle(this.sql, stream.request.id, charge, this.now);
    this.#counted = this.#is(0.7) ? { hash, tokens: prompt, bytes } : null;
  }

  #wait(): void {
    this.now += this.#is(0.3) ? this.#upTo(14) * 60 * MINUTE : this.#upTo(8) * MINUTE;
    expire(this.sql, this.now);
    for (const stream of this.#streams) if (stream.until <= this.now) stream.isRunning = false;
  }

  #topUp(): void {
    const added = { id: `t${this.#topUps++}`, actor: 'a', note: '', unit: 'tokens', amount: 1000 } as const;
    addToBudget(this.sql, storedLimits(this.sql), { ...added, per: 'day' }, this.now);
  }

  /** At any time, in each period: what was billed is within the budget, or within what `running` promises. */
  #check(): void {
    const status = readLimitStatus(this.sql, this.now);
    for (const { budget } of budgetUses(status)) {
      const streams = this.#streams.filter((one) => this.#counts(one, budget));
      const billed = sumOf(streams.map((one) => one.billed));
      const over = sumOf(streams.map((one) => one.promptOver + one.outputOver));
      expect(billed, `${budget.per} ${this.#mode}`).toBeLessThanOrEqual(budget.amount + over);
    }
  }

  #counts({ day }: Stream, { per }: Budget): boolean {
    return periodName(per, day) === periodName(per, this.now);
  }

  finish(): void {
    for (const stream of this.#streams) if (stream.isRunning) this.#settle(stream);
    this.now += EXPIRES_MS;
    expire(this.sql, this.now);
    const { budget, windows = [] } = readLimitStatus(this.sql, this.now);
    expect([budget, ...windows].map((use) => use?.reserved)).toEqual([0, 0, 0]);
    expect(this.sql.count('reservations')).toBe(0);
  }
}

function sumOf(amounts: readonly number[]): number {
  return amounts.reduce((sum, amount) => sum + amount, 0);
}

test(`G2 G9 ${RUNS} random runs from seed ${SEED}: what is billed stays within the promise of each mode`, async () => {
  for (let seed = SEED; seed < SEED + RUNS; seed++) {
    await repeatable(seed, async () => {
      const run = new Run(seed);
      for (let i = 0; i < STEPS; i++) run.step();
      run.finish();
    });
  }
});
