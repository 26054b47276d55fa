/** The Worker as it is deployed, and the class of its ledger objects: a host that wants the class alone gets nothing of the other. */
export { LedgerObject } from './ledger/ledger-object.ts';
export { default } from './worker/deployed.ts';
