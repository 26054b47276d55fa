/** The deployed Worker, imported from the package. */
export { default, LedgerObject, ResponseObject } from 'weir-gateway/worker';
