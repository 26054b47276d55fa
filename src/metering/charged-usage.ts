/** What a request is charged with against its key's limits: beside its record, which keeps estimates (G3). */
import type { UsageRecord } from './record.ts';

/** What a request used as reported, and at most where no provider reported it. */
export interface Charge {
  readonly tokens: number;
  /** Integer of 10^-9 of the currency; null where it is not known. */
  readonly cost: { readonly currency: string; readonly nano: number } | null;
  /** Of both, what is charged at its bound; absent: nothing. */
  readonly unreported?: { readonly tokens: number; readonly nano: number };
  /** The tokens that the record has, which `tpm` counts; absent: as `tokens`. */
  readonly recordedTokens?: number;
}

/** What a request is charged with whose upstream was not asked after all. */
export const NOTHING: Charge = { tokens: 0, cost: null };

/** A record on its way to its ledger, where its charge is another than its own figures. Ledgers do not keep the charge. */
export type ChargedRecord = UsageRecord & { readonly charge?: Charge };

export function chargeOfRecord({ total_tokens, cost_nanos, currency }: UsageRecord): Charge {
  const cost = cost_nanos === null || currency === null ? null : { currency, nano: cost_nanos };
  return { tokens: total_tokens, cost };
}

/** The record as it is kept, logged and given to hooks. */
export function withoutCharge({ charge: _, ...record }: ChargedRecord): UsageRecord {
  return record;
}

export function withoutCharges(records: readonly ChargedRecord[]): readonly UsageRecord[] {
  return records.every(({ charge }) => charge === undefined) ? records : records.map(withoutCharge);
}
