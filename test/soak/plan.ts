/** What each client of the soak does and what its record must then contain: the same for the same seed and number. */

import type { RecordSummary } from '../../src/metering/record.ts';
import { seeded } from '../random.ts';

/** Answers in which each provider sends at least eight events. */
const MODELS = [
  'deepseek/deepseek-chat',
  'deepseek/deepseek-reasoner',
  'mistral/mistral-small-latest',
  'mistral/magistral-medium-latest',
  'codestral/codestral-latest',
  'opentoken/google/gemini-3-flash',
  'xerotier/llama-3.1-8b',
  'xerotier/llama-3.1-8b-deep-think',
  'openai/gpt-4o-mini',
  'compatible/llama-3.3-70b-versatile',
];

/** The longest of them: workerd detects a disconnect only after a write or two, which must still be to come. */
const LONG_MODELS = [
  'deepseek/deepseek-chat',
  'deepseek/deepseek-reasoner',
  'mistral/magistral-medium-latest',
];

/** How an upstream fails, and the status that the record then has. */
const FAULTS: readonly (readonly [name: string, status: RecordSummary['status']])[] = [
  ['cut', 'failed'],
  ['reset', 'failed'],
  ['junk', 'failed'],
  ['error-event', 'failed'],
  ['error-first', 'failed'],
  ['status-503', 'failed'],
  ['stall-mid', 'timed_out'],
];

const DISCONNECT_SHARE = 0.1;
const SLOW_SHARE = 0.1;
const FAILING_SHARE = 0.05;
/** Of those that disconnect, so many do so before the head. */
const EARLY_SHARE = 0.2;
/** Before the middle of every answer, so that none ends before its client has disconnected. */
const MAX_EVENTS_BEFORE_DISCONNECT = 4;
const MAX_SLOW_PAUSE_MS = 2000;

export type PlanKind = 'plain' | 'disconnects' | 'disconnects early' | 'slow' | 'failing';
export const PLAN_KINDS: readonly PlanKind[] = [
  'plain',
  'disconnects',
  'disconnects early',
  'slow',
  'failing',
];

export interface Plan {
  readonly kind: PlanKind;
  readonly model: string;
  readonly status: RecordSummary['status'];
  /** The data events after which the client disconnects. */
  readonly eventsBeforeDisconnect: number;
  /** How long the client waits after each read. */
  readonly pauseMs: number;
}

/** The plan of the client with this number. */
export function planOf(seed: number, number: number): Plan {
  const random = seeded(seed * 1_000_003 + number);
  const model = pick(MODELS, random());
  const share = random();
  const plan: Plan = {
    kind: 'plain',
    model,
    status: 'finished',
    eventsBeforeDisconnect: Infinity,
    pauseMs: 0,
  };
  if (share < DISCONNECT_SHARE * EARLY_SHARE)
    return { ...plan, kind: 'disconnects early', model: `${model}:hang`, status: 'cancelled' };
  if (share < DISCONNECT_SHARE) {
    const eventsBeforeDisconnect = 1 + Math.floor(random() * MAX_EVENTS_BEFORE_DISCONNECT);
    const longest = pick(LONG_MODELS, random());
    return { ...plan, kind: 'disconnects', model: longest, status: 'cancelled', eventsBeforeDisconnect };
  }
  if (share < DISCONNECT_SHARE + SLOW_SHARE)
    return { ...plan, kind: 'slow', pauseMs: Math.ceil(random() * MAX_SLOW_PAUSE_MS) };
  if (share < DISCONNECT_SHARE + SLOW_SHARE + FAILING_SHARE) {
    const [fault, status] = pick(FAULTS, random());
    return { ...plan, kind: 'failing', model: `${model}:${fault}`, status };
  }
  return plan;
}

function pick<Item>(items: readonly Item[], random: number): Item {
  const item = items[Math.floor(random * items.length)];
  if (item === undefined) throw new Error('There is nothing to pick from');
  return item;
}
