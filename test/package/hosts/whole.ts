/** Weir as the complete Worker. */
import { weir } from 'weir-gateway';

export { LedgerObject } from 'weir-gateway/worker';

export default weir() satisfies ExportedHandler;
