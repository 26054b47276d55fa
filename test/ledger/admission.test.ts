/** The admission of a user whose name cannot be hashed: an erasure would not find what it spends (W5). */
import { expect, test } from 'vitest';
import type { AdmissionRequest, EarlyAdmissionRequest } from '../../src/completion/admission.ts';
import { createAdmit, createAdmitEarly, type LimitLedger } from '../../src/ledger/admission.ts';
import { ShownSpeeds } from '../../src/metering/pricing/output-speeds.ts';

/** Fails the test where it is called. */
const UNTOUCHED = {
  settings: { ledger: 'object', budgetFail: 'open' },
  spreads: null,
  hasher: null,
  speeds: new ShownSpeeds(),
  get client(): never {
    throw new Error('The ledger is called');
  },
} satisfies LimitLedger;

test('W5 a key with limits for each user refuses a named user, also with BUDGET_FAIL=open', async () => {
  const context = { users: { hash: { unreadable: 'USER_HASH_KEY' } } };
  const request = { context, keyId: 'k', user: { name: 'ada' } };
  const refused = { kind: 'error', error: { error: { status: 503, code: 'secret_unreadable' } } };
  expect(await createAdmitEarly(UNTOUCHED)(request as unknown as EarlyAdmissionRequest)).toMatchObject(
    refused,
  );
  expect(await createAdmit(UNTOUCHED)(request as unknown as AdmissionRequest)).toMatchObject(refused);
});
