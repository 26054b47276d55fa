/** What the gateway does where a feature is not listed: it works without, and refuses what only the feature enforces. */
import { limitField } from './auth/key-limits.ts';
import { apiError } from './canonical/error.ts';
import type { Admit, AdmitEarly, Attribute } from './completion/admission.ts';
import type { AttributionPart, LimitsPart, RecordsPart } from './feature.ts';
import type { Ports } from './http/context.ts';
import type { Erasure } from './http/erasure.ts';
import { KeysInKv } from './http/keys-in-kv.ts';
import { userRequired } from './http/request.ts';
import type { FactNames } from './http/users.ts';
import { KvLedger, type LedgerStore } from './metering/kv-ledger.ts';
import type { LedgerStatus } from './metering/ledger.ts';
import { NO_ATTRIBUTION } from './metering/record.ts';
import { howToList } from './settings/feature-settings.ts';
import { failure, ok } from './shared/result.ts';

const LEDGER_MISSING = `Limits of keys need ledger(): ${howToList('ledger')}`;

/** Keys without limits can be changed; limits are refused. */
const KEYS_WITHOUT_LEDGER = new KeysInKv((fields) => {
  const field = limitField(fields);
  return field === null
    ? apiError('misconfigured', LEDGER_MISSING)
    : apiError('invalid_request', LEDGER_MISSING, field);
});

/** `identifyCaller` has refused the keys that this is for. */
const refuseLimited: Admit & AdmitEarly = async () =>
  failure({ error: apiError('misconfigured', LEDGER_MISSING), headers: {} });

const attributeNothing: Attribute = async ({ caller }) =>
  caller.facts.requiresUser
    ? failure(userRequired())
    : ok({ attribution: NO_ATTRIBUTION, session: null, affinity: null, hashPrompt: null });

/** Records that were stored before may have names, as they were sent. */
const PLAIN_NAMES: FactNames = {
  hidesUsers: false,
  ofCaller: async () => null,
  user: async (plain) => plain,
  forms: async (plain) => [plain],
  owner: async (plain) => plain,
  fact: async (plain) => plain,
};

/** Rejects, so that the queue delivers the messages again. */
export async function refuseMessages(): Promise<void> {
  throw new Error(`Records of a Queue need ledger(): ${howToList('ledger')}`);
}

/** The status of the ledger in KV, which has no queue, no waiting records and no objects. */
async function statusOfKv(): Promise<LedgerStatus> {
  return { store: 'kv', has_queue: false, waiting_records: 0, has_archive: false, full_keys: [] };
}

export const WITHOUT_ATTRIBUTION: AttributionPart = {
  attribute: attributeNothing,
  names: PLAIN_NAMES,
  hashUser: null,
  verifyAccess: null,
};

export const WITHOUT_LIMITS: LimitsPart = {
  admission: { admit: refuseLimited, admitEarly: refuseLimited },
  settle: (records) => records,
  keyObjects: KEYS_WITHOUT_LEDGER,
};

/** Records in KV. */
export function recordsInKv(store: LedgerStore): RecordsPart {
  const ledger = new KvLedger(store);
  return { ledger, sinks: [ledger], status: statusOfKv, compareCache: null };
}

/** How long an erasure waits for the feature that takes its steps. */
const HELD_MS = 60 * 60 * 1000;

/** The erasure as it is: a deployment with the feature started it, and this one has no stores to search. */
export function holdErasure(erasure: Erasure, { clock, log }: Pick<Ports, 'clock' | 'log'>): Erasure {
  const problem = `Erasures need privacy(): ${howToList('privacy')}`;
  log({ event: 'erasure_failed', erasure: erasure.id, reason: problem });
  return { ...erasure, problem, dueAt: clock.now() + HELD_MS };
}
