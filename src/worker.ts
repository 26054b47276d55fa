/** The package's entry `./worker`: the Worker with every feature. */
import { LedgerObject as LedgerClass } from './ledger/ledger-object.ts';
import type { DurableObjectClass } from './types.ts';

// A bundler that needs this class alone leaves out `worker-gateway.ts`, which logs when it is loaded.
export { default, ResponseObject } from './worker-gateway.ts';

/** The class of the ledger objects (`WEIR_LEDGER`). */
export const LedgerObject: DurableObjectClass = decodeClass(LedgerClass);

/** The runtime passes an environment with the documented bindings. */
function decodeClass(objectClass: typeof LedgerClass): DurableObjectClass {
  return objectClass as DurableObjectClass<never> as DurableObjectClass; // decode
}
