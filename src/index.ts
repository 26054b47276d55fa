/** The deployed Worker: its handlers, and the classes of its Durable Objects. */
// Only re-exports: a bundler that needs a class alone leaves out `deployed.ts`, which logs when it is loaded.
export { default, ResponseObject } from './deployed.ts';
export { LedgerObject } from './ledger/ledger-object.ts';
