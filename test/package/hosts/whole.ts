/** Weir as the complete Worker. */
import { weir } from 'weir-gateway';

export { LedgerObject } from 'weir-gateway/worker';

const gateway = weir();
export const { ResponseObject } = gateway;
export default gateway satisfies ExportedHandler;
