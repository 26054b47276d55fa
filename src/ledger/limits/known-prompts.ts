/** What providers have counted of prompts: a request that begins as an earlier one is bounded by that, and by the bytes that follow. */
import type { Sql } from './limit-tables.ts';

/** The prompt that a target may be sent. */
export interface PromptBound extends PromptTokens {
  /** Where one is known, it counts in place of the tokens of the whole. */
  readonly beginnings: readonly {
    /** 16 hexadecimal digits of a keyed hash. */
    readonly hash: string;
    /** Of what follows. */
    readonly more: PromptTokens;
  }[];
}

/** Tokens of a prompt that is not counted yet. */
export interface PromptTokens {
  /** At most. */
  readonly tokens: number;
  /** By what budgets reserve that extend their reservation as output runs: a text has half as many tokens as bytes. */
  readonly likelyTokens: number;
}

/** A whole prompt, as its provider counted it. */
export interface CountedPrompt {
  readonly hash: string;
  readonly tokens: number;
}

/** Hashes that travel with one reservation. */
export const MAX_HASHES = 64;
/** A provider may change how it counts. */
const KNOWN_MS = 24 * 60 * 60 * 1000;

/**
 * Entries of one object. Each hash has one slot, so that an entry is one row written and none is searched for. Callers cannot choose
 * hashes, so that the slots fill evenly: of 100 entries, the next 100 replace two or three.
 */
const SLOT_DIGITS = 3;

/** The highest of any of the prompts. @param now in ms since the epoch */
export function boundPrompts(sql: Sql, prompts: readonly PromptBound[], now: number): PromptTokens {
  const hashes = prompts.flatMap(({ beginnings }) => beginnings.map(({ hash }) => hash)).slice(0, MAX_HASHES);
  const countedPrompts = readCounted(sql, hashes, now);
  const highest = (unit: keyof PromptTokens) => {
    const bounds = prompts.map((prompt) => {
      const after = prompt.beginnings.flatMap(({ hash, more }) => {
        const counted = countedPrompts.get(hash);
        return counted === undefined ? [] : [counted + more[unit]];
      });
      return Math.min(prompt[unit], ...after);
    });
    return Math.max(...bounds);
  };
  return { tokens: highest('tokens'), likelyTokens: highest('likelyTokens') };
}

function readCounted(sql: Sql, hashes: readonly string[], now: number): ReadonlyMap<string, number> {
  if (hashes.length === 0) return new Map();
  const query = `SELECT hash, tokens FROM counted WHERE slot IN (${hashes.map(() => '?').join(', ')}) AND at > ?`;
  const rows = sql.exec<{ hash: string; tokens: number }>(query, ...hashes.map(slotOf), now - KNOWN_MS);
  return new Map(rows.toArray().map(({ hash, tokens }) => [hash, tokens]));
}

export function keepCounted(sql: Sql, { hash, tokens }: CountedPrompt, now: number): void {
  sql.exec('INSERT OR REPLACE INTO counted VALUES (?, ?, ?, ?)', slotOf(hash), hash, tokens, now);
}

function slotOf(hash: string): number {
  return Number.parseInt(hash.slice(0, SLOT_DIGITS), 16);
}
