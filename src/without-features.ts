/** What the gateway does where a feature is not listed: it works without, and refuses what only the feature enforces. */
import { limitField } from './auth/key-limits.ts';
import { apiError } from './canonical/error.ts';
import type { Admit, AdmitEarly, Attribute } from './completion/admission.ts';
import type { FactNames } from './http/context.ts';
import { KeysInKv } from './http/keys-in-kv.ts';
import { userRequired } from './http/request.ts';
import type { LedgerStatus } from './metering/ledger.ts';
import { NO_ATTRIBUTION } from './metering/record.ts';
import { howToList } from './settings/feature-settings.ts';
import { failure, ok } from './shared/result.ts';

const LEDGER_MISSING = `Limits of keys need ledger(): ${howToList('ledger')}`;

/** Keys without limits can be changed; limits are refused. */
export const KEYS_WITHOUT_LEDGER = new KeysInKv((fields) => {
  const field = limitField(fields);
  return field === null
    ? apiError('misconfigured', LEDGER_MISSING)
    : apiError('invalid_request', LEDGER_MISSING, field);
});

/** `identifyCaller` has refused the keys that this is for. */
export const refuseLimited: Admit & AdmitEarly = async () =>
  failure({ error: apiError('misconfigured', LEDGER_MISSING), headers: {} });

export const attributeNothing: Attribute = async ({ caller }) =>
  caller.facts.requiresUser
    ? failure(userRequired())
    : ok({ attribution: NO_ATTRIBUTION, session: null, affinity: null, hashPrompt: null });

/** Records that were stored before may have names, as they were sent. */
export const PLAIN_NAMES: FactNames = {
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
export async function statusOfKv(): Promise<LedgerStatus> {
  return { store: 'kv', has_queue: false, waiting_records: 0, has_archive: false, full_keys: [] };
}
