/** Weir as the whole Worker. */
import { weir } from 'weir-gateway';

export { LedgerObject } from 'weir-gateway/worker';

export default weir() satisfies ExportedHandler;
