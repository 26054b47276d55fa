/** The Worker as it is deployed, out of the package. */
export { default, LedgerObject } from 'weir-gateway/worker';
