/** The gateway of the package's entry `./worker`, with the dashboard's page inside the bundle. */
import { dashboard } from './dashboard/feature.ts';
import { createWholeWorker } from './whole-worker.ts';

const gateway = createWholeWorker(dashboard());

export default gateway;
export const { LedgerObject, ResponseObject } = gateway.objects;
