/** The calls of providers that a record tells of, each with whose fault its failure is. */
import { type Fault, faultOfCall } from '../canonical/fault.ts';
import type { ListedRecord } from './ledger.ts';
import type { RecordedAttempt } from './record.ts';

/** One call of a provider. */
export interface ProviderCall {
  readonly attempt: Pick<
    RecordedAttempt,
    'provider' | 'model' | 'status' | 'error_code' | 'cause' | 'message'
  >;
  readonly record: ListedRecord;
  /** It is the first call of its request, and others followed. */
  readonly isRetried: boolean;
  readonly isLast: boolean;
}

/** The calls of a request. A record whose attempts the store does not have yet counts as one call. */
export function callsOf(record: ListedRecord): readonly ProviderCall[] {
  const {
    provider,
    model,
    error_code,
    attempts = [{ provider, model, status: null, error_code, ms: 0 }],
  } = record;
  const called = attempts.filter(({ ms }) => ms !== null);
  return called.map((attempt, at) => ({
    ...{ attempt, record, isRetried: at === 0 && called.length > 1 },
    isLast: at === called.length - 1,
  }));
}

/** Whose fault the failure of a call is. The record knows more of its last call, such as whether the model is an alias's. */
export function faultOfProviderCall({ attempt, record, isLast }: ProviderCall): Fault {
  return (isLast ? record.fault : null) ?? faultOfCall(attempt.status, attempt.error_code ?? '');
}
