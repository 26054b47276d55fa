/** The deployed Worker, imported from the package. */
export { default, LedgerObject } from 'weir-gateway/worker';
