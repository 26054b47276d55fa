/** Weir as the complete Worker. */
import { weir } from 'weir-gateway';
import { attribution } from 'weir-gateway/attribution';
import { dashboard } from 'weir-gateway/dashboard';
import { durableResponses } from 'weir-gateway/durable-responses';
import { ledger } from 'weir-gateway/ledger';
import { origin } from 'weir-gateway/origin';
import { privacy } from 'weir-gateway/privacy';

const gateway = weir({
  features: [ledger(), attribution(), durableResponses(), privacy(), dashboard(), origin()],
});
export const { LedgerObject, ResponseObject } = gateway.objects;
export default gateway satisfies ExportedHandler;
