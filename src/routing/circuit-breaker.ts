/** Circuit breakers: skip a target for some seconds after repeated failures. Each isolate has its own. */
import type { Verdict } from './failures.ts';

/** This many consecutive failures open a target's circuit. */
export const CIRCUIT_FAILURES = 5;

/** How long a circuit stays open after failures. */
export const CIRCUIT_OPEN_MS = 10_000;

/** How long a circuit stays open after a refusal of the deployment's key, balance or model. */
export const CIRCUIT_REFUSED_MS = 60_000;

/** Targets whose failures an isolate stores. Callers choose the model names. */
export const MAX_CIRCUITS = 1000;

interface Circuit {
  /** Consecutive failures. */
  readonly failures: number;
  /** The caller of all failed requests: the circuit is open for this caller only. Null: for every caller. */
  readonly caller: string | null;
  /** The circuit is open until then; null: it is closed. */
  readonly openUntil: number | null;
  /** One of the failures may be billed. */
  readonly isBilled: boolean;
}

export interface OpenCircuit extends Pick<Circuit, 'failures' | 'caller'> {
  readonly target: string;
  readonly openUntil: number;
}

/** Stores only targets whose last attempt failed. All times are in ms since the epoch. */
export class CircuitBreakers {
  /** The oldest failure comes first. */
  readonly #circuits = new Map<string, Circuit>();

  /** The circuits that are open now. */
  openCircuits(now: number): readonly OpenCircuit[] {
    return [...this.#circuits].flatMap(([target, { failures, caller, openUntil }]) =>
      openUntil !== null && now < openUntil ? { target, caller, failures, openUntil } : [],
    );
  }

  /** Whether the target is skipped for this caller's requests. */
  isOpen(target: string, caller: string, now: number): boolean {
    if (this.#circuits.size === 0) return false;
    const circuit = this.#circuits.get(target);
    if (circuit === undefined || circuit.openUntil === null) return false;
    return now < circuit.openUntil && (circuit.caller === null || circuit.caller === caller);
  }

  /**
   * How long the target's circuit stays open for this caller after failures that may be billed, in ms; null: it is closed, or none of
   * them is billed.
   */
  billedOpenMs(target: string, caller: string, now: number): number | null {
    const circuit = this.#circuits.get(target);
    if (circuit?.isBilled !== true || !this.isOpen(target, caller, now)) return null;
    return (circuit.openUntil ?? now) - now;
  }

  /**
   * Call it before the target is called. After the open time the circuit is half open: one request probes the target, and the circuit
   * stays open for all others.
   * @returns whether this request is the probe
   */
  startProbe(target: string, now: number): boolean {
    if (this.#circuits.size === 0) return false;
    const circuit = this.#circuits.get(target);
    if (circuit === undefined || circuit.openUntil === null || now < circuit.openUntil) return false;
    this.#set(target, { ...circuit, openUntil: now + CIRCUIT_OPEN_MS });
    return true;
  }

  /** The probe had no result: the next request probes the target. */
  releaseProbe(target: string, now: number): void {
    const circuit = this.#circuits.get(target);
    if (circuit !== undefined) this.#set(target, { ...circuit, openUntil: now });
  }

  succeeded(target: string): void {
    if (this.#circuits.size > 0) this.#circuits.delete(target);
  }

  /**
   * Failures of one caller's requests (its rate limit, a prompt that is too long) open the circuit for this caller only.
   * @param isBilled the upstream may bill the failed attempt
   */
  failed(
    target: string,
    caller: string,
    effect: Verdict['circuitEffect'],
    now: number,
    isBilled = false,
  ): void {
    if (effect === 'nothing') return;
    const known = this.#circuits.get(target);
    const { failures: before = 0, openUntil: openBefore = null, caller: onlyCaller = caller } = known ?? {};
    const failures = before + 1;
    const isOneCaller = effect === 'failure' && onlyCaller === caller;
    const ms = effect === 'refusal' ? CIRCUIT_REFUSED_MS : CIRCUIT_OPEN_MS;
    const isOpen = effect === 'refusal' || failures >= CIRCUIT_FAILURES;
    // The failure of a request that was sent before a refusal does not shorten the open time of that refusal.
    const openUntil = isOpen ? Math.max(now + ms, openBefore ?? 0) : openBefore;
    this.#set(target, {
      failures,
      caller: isOneCaller ? caller : null,
      openUntil,
      isBilled: isBilled || known?.isBilled === true,
    });
  }

  #set(target: string, circuit: Circuit): void {
    this.#circuits.delete(target);
    this.#circuits.set(target, circuit);
    const [oldest] = this.#circuits.size > MAX_CIRCUITS ? this.#circuits.keys() : [];
    if (oldest !== undefined) this.#circuits.delete(oldest);
  }
}
