/** The package's entry `./worker`: the Worker with every feature. */
// Only re-exports: a bundler that needs a class alone leaves out `worker-gateway.ts`, which logs when it is loaded.
export { LedgerObject } from './ledger/ledger-object.ts';
export { default, ResponseObject } from './worker-gateway.ts';
