/** Plans what each client of the soak does and what its record must contain. The same seed and number give the same plan. */

import type { RecordSummary } from '../../src/metering/record.ts';
import { seeded } from '../../test/random.ts';
import { type Answer, modelsOf } from './models.ts';
import type { ProtocolName } from './protocols.ts';

/** The kinds of clients: one for each client protocol, and `passthrough` for clients whose provider uses the same protocol. */
export const CLIENTS = ['chat', 'completions', 'messages', 'responses', 'passthrough'] as const;
export type ClientName = (typeof CLIENTS)[number];

/** Upstream faults, and the record's status for each. */
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
/** The share of disconnecting clients that do so before the response head. */
const EARLY_SHARE = 0.2;
/** Before the middle of every output, so that no stream ends before its client disconnects. */
const MAX_PIECES_BEFORE_DISCONNECT = 4;
const MAX_SLOW_PAUSE_MS = 2000;

const PASSTHROUGH_PROTOCOLS = ['messages', 'responses'] as const;

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
  readonly client: ClientName;
  readonly protocol: ProtocolName;
  /** The requested model, with its fault. */
  readonly model: string;
  /** The possible outputs. A stream that fails has the beginning of one. */
  readonly answers: readonly Answer[];
  readonly status: RecordSummary['status'];
  /** The number of pieces of text or reasoning after which the client disconnects. */
  readonly piecesBeforeDisconnect: number;
  /** How long the client waits after each read. */
  readonly pauseMs: number;
}

/** The plan of the client with this number. */
export function planOf(seed: number, number: number, clients: readonly ClientName[]): Plan {
  const random = seeded(seed * 1_000_003 + number);
  // In turn, so that each kind has the same number.
  const client = clients[number % clients.length] ?? 'chat';
  const isPassthrough = client === 'passthrough';
  const protocol = isPassthrough ? pick(PASSTHROUGH_PROTOCOLS, random()) : client;
  const models = modelsOf(protocol, isPassthrough);
  const answer = pick(models, random());
  const share = random();
  const plan: Plan = {
    kind: 'plain',
    client,
    protocol,
    model: answer.model,
    answers: [answer],
    status: 'finished',
    piecesBeforeDisconnect: Infinity,
    pauseMs: 0,
  };
  if (share < DISCONNECT_SHARE * EARLY_SHARE)
    return { ...plan, kind: 'disconnects early', model: `${answer.model}:hang`, status: 'cancelled' };
  if (share < DISCONNECT_SHARE) {
    const piecesBeforeDisconnect = 1 + Math.floor(random() * MAX_PIECES_BEFORE_DISCONNECT);
    const long = longest(models);
    const kind = 'disconnects';
    return { ...plan, kind, model: long.model, answers: [long], status: 'cancelled', piecesBeforeDisconnect };
  }
  if (share < DISCONNECT_SHARE + SLOW_SHARE)
    return { ...plan, kind: 'slow', pauseMs: Math.ceil(random() * MAX_SLOW_PAUSE_MS) };
  if (share < DISCONNECT_SHARE + SLOW_SHARE + FAILING_SHARE) {
    const [fault, status] = pick(FAULTS, random());
    return { ...plan, kind: 'failing', model: `${answer.model}:${fault}`, status };
  }
  return plan;
}

/** workerd detects a disconnect only at a later write, so the output must be long enough. */
function longest(models: readonly Answer[]): Answer {
  return models.reduce((one, other) => (other.completionTokens > one.completionTokens ? other : one));
}

function pick<Item>(items: readonly Item[], random: number): Item {
  const item = items[Math.floor(random * items.length)];
  if (item === undefined) throw new Error('The list is empty');
  return item;
}
