/**
 * What an isolate sees of its providers, reported to the object of alerts: calls and failures, refused credentials,
 * open circuits (G11).
 */
import type { OpenedCircuit } from '../../completion/admission.ts';
import type { RequestContext } from '../../http/context.ts';
import { callsOf, faultOfProviderCall, type ProviderCall } from '../../metering/provider-calls.ts';
import type { ChargedRecord } from '../../metering/record.ts';
import type { RecordWriter } from '../../metering/record-writer.ts';
import { callTwice } from '../../shared/durable-objects.ts';
import type { JsonObject } from '../../shared/json.ts';
import { ALERTS, type LedgerNamespace, type LedgerStub } from '../ledger-calls.ts';
import {
  failureText,
  MIN_FAILURES,
  type OperatorAlert,
  SILENT_MS,
  SLOT_MS,
  WINDOW_MS,
} from './operator-alerts.ts';

/** An isolate reports the counts of one provider at most this often. */
const REPORT_EVERY_MS = 10_000;
/** How long a report may take. */
const MAX_REPORT_MS = 5000;
/** After a report that failed. */
const RETRY_AFTER_MS = 60_000;
/** Providers whose calls are counted. Settings name them. */
const MAX_PROVIDERS = 200;
/** Subjects of which an isolate knows that there was an alert. Callers choose names of models. */
const MAX_SUBJECTS = 1000;

interface Seen {
  /** Calls and failures, by slot. The oldest slot comes first. */
  readonly slots: Map<number, [calls: number, failures: number]>;
  last: JsonObject;
  /** The next report may not be earlier, in ms since the epoch. What comes before is in the report of the next failure. */
  nextAt: number;
}

type WatchContext = Pick<RequestContext, 'ports' | 'settings' | 'waitUntil'>;

export class ProviderWatch {
  readonly #ledgers: LedgerNamespace;
  readonly #random: () => string;
  #isolate: string | null = null;
  readonly #seen = new Map<string, Seen>();
  /** Until when nothing is reported of a subject, in ms since the epoch. The oldest comes first. */
  readonly #silentUntil = new Map<string, number>();

  /** @param random an id of this isolate, drawn with its first report */
  constructor(ledgers: LedgerNamespace, random: () => string) {
    this.#ledgers = ledgers;
    this.#random = random;
  }

  /** A writer that also counts the calls of each record. What is reported does not delay or break the write. */
  records(writer: Pick<RecordWriter, 'write'>, context: WatchContext): Pick<RecordWriter, 'write'> {
    return {
      write: (record: ChargedRecord, startTimer) => {
        for (const call of callsOf(record)) this.#see(call, context);
        return writer.write(record, startTimer);
      },
    };
  }

  /** Reports a circuit that has opened. */
  circuitOpened(opened: OpenedCircuit, context: WatchContext): void {
    const { provider, model, failures, open_until, key_id } = opened;
    const whose = key_id === null ? '' : ` for the key ${key_id}`;
    this.#report(context, {
      event: 'circuit_opened',
      subject: `${provider}/${model}`,
      fields: opened,
      text: `the circuit of ${provider}/${model} is open${whose} after ${failures} ${failures === 1 ? 'failure' : 'failures'}: an isolate does not call it until ${open_until}. The last failure: ${failureText(opened)}`,
    });
  }

  #see(call: ProviderCall, context: WatchContext): void {
    const { provider, error_code } = call.attempt;
    const now = context.ports.clock.now();
    const isFailure = error_code !== null && faultOfProviderCall(call) === 'provider';
    const seen = this.#count(provider, isFailure, now);
    if (error_code === 'upstream_credential') this.#credentialRefused(call, context);
    if (!isFailure || seen === null) return;
    seen.last = lastOf(call);
    if (this.#isSilent(`provider_failing ${provider}`, now)) return;
    // This isolate alone may have seen enough.
    const isEnough = failuresOf(seen) === MIN_FAILURES;
    if (!isEnough && now < seen.nextAt) return;
    seen.nextAt = now + REPORT_EVERY_MS;
    context.waitUntil(this.#reportCalls(provider, seen, context));
  }

  /** Null: there is no room for another provider. */
  #count(provider: string, isFailure: boolean, now: number): Seen | null {
    const seen = this.#seen.get(provider) ?? {
      ...{ slots: new Map(), last: {}, nextAt: 0 },
    };
    if (!this.#seen.has(provider)) {
      if (this.#seen.size >= MAX_PROVIDERS) return null;
      this.#seen.set(provider, seen);
    }
    const slot = Math.floor(now / SLOT_MS);
    for (const old of seen.slots.keys()) {
      if (old > slot - WINDOW_MS / SLOT_MS) break;
      seen.slots.delete(old);
    }
    const counts = seen.slots.get(slot) ?? [0, 0];
    counts[0]++;
    if (isFailure) counts[1]++;
    seen.slots.set(slot, counts);
    return seen;
  }

  async #reportCalls(provider: string, seen: Seen, { ports: { clock } }: WatchContext): Promise<void> {
    const now = clock.now();
    const slots = [...seen.slots].map(([slot, [calls, failures]]) => [slot, calls, failures] as const);
    this.#isolate ??= this.#random();
    const counts = { isolate: this.#isolate, provider, slots, last: seen.last };
    const until = await this.#call(clock, (object) => object.takeCalls(counts));
    const silentUntil = until === 'failed' ? now + RETRY_AFTER_MS : until;
    if (silentUntil !== null) this.#silence(`provider_failing ${provider}`, silentUntil);
  }

  #credentialRefused(call: ProviderCall, context: WatchContext): void {
    const last = lastOf(call);
    const { provider } = call.attempt;
    const setting = context.settings.providers.get(provider)?.keySetting ?? null;
    const key = setting === null ? "this deployment's credential" : `the key of this deployment, ${setting}`;
    this.#report(context, {
      event: 'credential_refused',
      subject: provider,
      fields: { request_id: call.record.request_id, setting, ...last },
      text: `${provider} refuses ${key}: ${failureText(last)}`,
    });
  }

  #report({ ports: { clock }, waitUntil }: WatchContext, alert: Omit<OperatorAlert, 'silentMs'>): void {
    const now = clock.now();
    const subject = `${alert.event} ${alert.subject}`;
    if (this.#isSilent(subject, now)) return;
    // Until the object answers, so that requests at the same time do not each report it.
    this.#silence(subject, now + RETRY_AFTER_MS);
    const report = this.#call(clock, (object) => object.noteAlert({ ...alert, silentMs: SILENT_MS }));
    waitUntil(report.then((until) => void (until !== 'failed' && this.#silence(subject, until))));
  }

  /** Never rejects: an alert is not worth a failed request. */
  async #call<Value>(
    clock: WatchContext['ports']['clock'],
    send: (object: LedgerStub) => Promise<Value>,
  ): Promise<Value | 'failed'> {
    const late = Promise.withResolvers<'failed'>();
    const cancel = clock.startTimer(MAX_REPORT_MS, () => late.resolve('failed'));
    const answer = callTwice(() => this.#ledgers.getByName(ALERTS), send).catch(() => 'failed' as const);
    const first = await Promise.race([answer, late.promise]);
    cancel();
    return first;
  }

  #isSilent(subject: string, now: number): boolean {
    return now < (this.#silentUntil.get(subject) ?? 0);
  }

  #silence(subject: string, until: number): void {
    this.#silentUntil.delete(subject);
    this.#silentUntil.set(subject, until);
    const [oldest] = this.#silentUntil.size > MAX_SUBJECTS ? this.#silentUntil.keys() : [];
    if (oldest !== undefined) this.#silentUntil.delete(oldest);
  }
}

function failuresOf({ slots }: Seen): number {
  return slots.values().reduce((sum, [, failures]) => sum + failures, 0);
}

function lastOf({ attempt: { provider, model, status, error_code, message } }: ProviderCall): JsonObject {
  return { provider, model, status, error_code, message: message ?? null };
}
