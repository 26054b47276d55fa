/** The package's entry `./worker`: the Worker with every feature. */
export { default, LedgerObject, ResponseObject } from './worker-gateway.ts';
