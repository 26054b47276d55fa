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

/**
 * While a target leaves requests without an answer, this many attempts may wait for one. At 60 s each they are half of the 12 that a key
 * is charged in a minute at most.
 */
export const MAX_UNANSWERED_ATTEMPTS = 6;

/** A target that answers is one that did within this time. A client that leaves earlier says nothing about it. */
export const ANSWERED_MS = 10_000;

interface Circuit {
  /** Consecutive failures. */
  readonly failures: number;
  /** The caller of all failed requests: the circuit is open for this caller only. Null: for every caller. */
  readonly caller: string | null;
  /** The circuit is open until then; null: it is closed. */
  readonly openUntil: number | null;
  /** The last failure that may be billed; null: there is none. */
  readonly billedAt: number | null;
}

/** The attempts of a target that wait for an answer. */
interface WaitingAttempts {
  /** The oldest comes first. */
  readonly attempts: Set<{ readonly startedAt: number }>;
  /** The last answer while attempts were waiting. */
  answeredAt: number;
}

export interface OpenCircuit extends Pick<Circuit, 'failures' | 'caller'> {
  readonly target: string;
  readonly openUntil: number;
}

/** Stores only targets whose last attempt failed. All times are in ms since the epoch. */
export class CircuitBreakers {
  /** The oldest failure comes first. */
  readonly #circuits = new Map<string, Circuit>();
  /** Only targets with waiting attempts. */
  readonly #waiting = new Map<string, WaitingAttempts>();

  /** The circuits that are open now. */
  openCircuits(now: number): readonly OpenCircuit[] {
    return [...this.#circuits].flatMap(([key, { failures, caller, openUntil }]) => {
      const [target = key] = key.split('\n');
      return openUntil !== null && now < openUntil ? { target, caller, failures, openUntil } : [];
    });
  }

  /** Whether the target is skipped for this caller's requests. */
  isOpen(target: string, caller: string, now: number): boolean {
    if (this.#circuits.size === 0) return false;
    const circuit = this.#circuits.get(target);
    if (circuit === undefined || circuit.openUntil === null) return false;
    return now < circuit.openUntil && (circuit.caller === null || circuit.caller === caller);
  }

  /**
   * How long the target is not called for this caller's requests where each attempt that may be billed counts, in ms; null: it is called.
   * Its circuit is open after failures that may be billed, or after requests that the caller itself abandoned, or too many attempts wait
   * for an answer.
   */
  sparedMs(target: string, caller: string, now: number): number | null {
    for (const key of keysOf(target, caller)) {
      const { billedAt = null, openUntil } = this.#circuits.get(key) ?? {};
      if (billedAt === null) continue;
      if (this.isOpen(key, caller, now)) return (openUntil ?? now) - now;
      if (this.#isSilent(target, billedAt, now)) return CIRCUIT_OPEN_MS;
    }
    return null;
  }

  /** Too many attempts wait for an answer, the oldest from before a failure that may be billed, and none was answered lately. */
  #isSilent(target: string, billedAt: number, now: number): boolean {
    const waiting = this.#waiting.get(target);
    if (waiting === undefined || waiting.attempts.size < MAX_UNANSWERED_ATTEMPTS) return false;
    const [oldest] = waiting.attempts;
    return oldest !== undefined && oldest.startedAt <= billedAt && now - waiting.answeredAt >= ANSWERED_MS;
  }

  /**
   * Call it when the target is called.
   * @returns to be called when the target has answered, or the attempt has ended without an answer. Later calls have no effect.
   */
  startWaiting(target: string, startedAt: number): (isAnswer: boolean, now: number) => void {
    const earlier = this.#waiting.get(target);
    const waiting = earlier ?? { attempts: new Set(), answeredAt: Number.NEGATIVE_INFINITY };
    if (earlier === undefined) this.#waiting.set(target, waiting);
    const attempt = { startedAt };
    waiting.attempts.add(attempt);
    return (isAnswer, now) => {
      if (!waiting.attempts.delete(attempt)) return;
      if (isAnswer) waiting.answeredAt = now;
      if (waiting.attempts.size === 0) this.#waiting.delete(target);
    };
  }

  /**
   * Call it before the target is called. After the open time the circuit is half open: one request probes the target, and the circuit
   * stays open for all others.
   * @returns whether this request is the probe
   */
  startProbe(target: string, caller: string, now: number): boolean {
    if (this.#circuits.size === 0) return false;
    const halfOpen = keysOf(target, caller).filter((key) => {
      const { openUntil = null } = this.#circuits.get(key) ?? {};
      return openUntil !== null && now >= openUntil;
    });
    for (const key of halfOpen) this.#openUntil(key, now + CIRCUIT_OPEN_MS);
    return halfOpen.length > 0;
  }

  /** The probe had no result: the next request probes the target. */
  releaseProbe(target: string, caller: string, now: number): void {
    for (const key of keysOf(target, caller)) this.#openUntil(key, now);
  }

  #openUntil(key: string, openUntil: number): void {
    const circuit = this.#circuits.get(key);
    if (circuit !== undefined && circuit.openUntil !== null) this.#set(key, { ...circuit, openUntil });
  }

  /** @returns whether a circuit was open, and is closed now */
  succeeded(target: string, caller: string): boolean {
    if (this.#circuits.size === 0) return false;
    let isClosed = false;
    for (const key of keysOf(target, caller)) {
      const { openUntil = null } = this.#circuits.get(key) ?? {};
      isClosed ||= openUntil !== null;
      this.#circuits.delete(key);
    }
    return isClosed;
  }

  /**
   * The caller left before the target answered, after a time in which an answer is likely. This may be an outage, and may be billed, but
   * callers decide when they leave: it opens a circuit of the caller alone, for requests where each attempt counts.
   */
  abandoned(target: string, caller: string, now: number): void {
    this.failed(ownKey(target, caller), caller, 'failure', now, true);
  }

  /**
   * Failures of one caller's requests (its rate limit, a prompt that is too long) open the circuit for this caller only.
   * @param isBilled the upstream may bill the failed attempt
   * @returns the circuit if this failure has opened it; null if it stays closed, or was open already
   */
  failed(
    target: string,
    caller: string,
    effect: Verdict['circuitEffect'],
    now: number,
    isBilled = false,
  ): OpenCircuit | null {
    if (effect === 'nothing') return null;
    const circuit = this.#circuits.get(target);
    const { failures: before = 0, openUntil: openBefore = null, caller: onlyCaller = caller } = circuit ?? {};
    const failures = before + 1;
    const isOneCaller = effect === 'failure' && onlyCaller === caller;
    const ms = effect === 'refusal' ? CIRCUIT_REFUSED_MS : CIRCUIT_OPEN_MS;
    const isOpen = effect === 'refusal' || failures >= CIRCUIT_FAILURES;
    // The failure of a request that was sent before a refusal does not shorten the open time of that refusal.
    const openUntil = isOpen ? Math.max(now + ms, openBefore ?? 0) : openBefore;
    const onlyFor = isOneCaller ? caller : null;
    const billedAt = isBilled ? now : (circuit?.billedAt ?? null);
    this.#set(target, { failures, caller: onlyFor, openUntil, billedAt });
    return openUntil === null || openBefore !== null
      ? null
      : { target, caller: onlyFor, failures, openUntil };
  }

  #set(target: string, circuit: Circuit): void {
    this.#circuits.delete(target);
    this.#circuits.set(target, circuit);
    const [oldest] = this.#circuits.size > MAX_CIRCUITS ? this.#circuits.keys() : [];
    if (oldest !== undefined) this.#circuits.delete(oldest);
  }
}

/** The circuits that keep a caller from a target: the target's, and that of the caller's own abandoned requests. */
function keysOf(target: string, caller: string): readonly string[] {
  return [target, ownKey(target, caller)];
}

/** No target has a line end in its name. */
function ownKey(target: string, caller: string): string {
  return `${target}\n${caller}`;
}
