/** The deployed Worker: its handlers, and the Durable Object class of its ledger. */
// Only re-exports: a bundler that needs the class alone leaves out `deployed.ts`, which logs when it is loaded.
export { default, ResponseObject } from './deployed.ts';
export { LedgerObject } from './ledger/ledger-object.ts';
