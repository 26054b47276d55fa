/** Which targets are left out for a while, because they failed again and again: as far as this isolate has seen (R7). */
import { CIRCUIT_FAILURES, CIRCUIT_OPEN_MS, CIRCUIT_REFUSED_MS, MAX_CIRCUITS } from '../shared/limits.ts';
import type { Verdict } from './failures.ts';

interface Circuit {
  /** In a row. */
  readonly failures: number;
  /** Whose requests failed, where they are all of one caller: it is out for that one alone. Null: of several, or refused to all. */
  readonly caller: string | null;
  /** Until then it is left out, in ms since the epoch; null: it is not out. */
  readonly outUntil: number | null;
}

/** Only targets that failed last are remembered. All times are ms since the epoch. */
export class CircuitBreakers {
  /** Those that failed longest ago come first. */
  readonly #circuits = new Map<string, Circuit>();

  /** Whether the target is left out of this caller's requests now. */
  isOpen(target: string, caller: string, now: number): boolean {
    if (this.#circuits.size === 0) return false;
    const circuit = this.#circuits.get(target);
    if (circuit === undefined || circuit.outUntil === null) return false;
    return now < circuit.outUntil && (circuit.caller === null || circuit.caller === caller);
  }

  /**
   * It is about to be asked. One that was out is out again meanwhile: this one request tries it for all.
   * @returns whether this request tries it
   */
  startProbe(target: string, now: number): boolean {
    if (this.#circuits.size === 0) return false;
    const circuit = this.#circuits.get(target);
    if (circuit === undefined || circuit.outUntil === null || now < circuit.outUntil) return false;
    this.#set(target, { ...circuit, outUntil: now + CIRCUIT_OPEN_MS });
    return true;
  }

  /** The request that was to try it did not ask it after all: the next one may. */
  releaseProbe(target: string, now: number): void {
    const circuit = this.#circuits.get(target);
    if (circuit !== undefined) this.#set(target, { ...circuit, outUntil: now });
  }

  succeeded(target: string): void {
    if (this.#circuits.size > 0) this.#circuits.delete(target);
  }

  /** What one caller's requests meet, its rate limit or a prompt that is too much, turns the target off for nobody else. */
  failed(target: string, caller: string, counts: Verdict['circuitEffect'], now: number): void {
    if (counts === 'nothing') return;
    const known = this.#circuits.get(target);
    const { failures: before = 0, outUntil: outBefore = null, caller: onlyCaller = caller } = known ?? {};
    const failures = before + 1;
    const isOfOne = counts === 'failure' && onlyCaller === caller;
    const ms = counts === 'refusal' ? CIRCUIT_REFUSED_MS : CIRCUIT_OPEN_MS;
    const isOut = counts === 'refusal' || failures >= CIRCUIT_FAILURES;
    // A failure of a request that was sent before a refusal does not shorten what that one said.
    const outUntil = isOut ? Math.max(now + ms, outBefore ?? 0) : outBefore;
    this.#set(target, { failures, caller: isOfOne ? caller : null, outUntil });
  }

  #set(target: string, circuit: Circuit): void {
    this.#circuits.delete(target);
    this.#circuits.set(target, circuit);
    const [oldest] = this.#circuits.size > MAX_CIRCUITS ? this.#circuits.keys() : [];
    if (oldest !== undefined) this.#circuits.delete(oldest);
  }
}
