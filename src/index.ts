/** The deployed Worker: every feature, with the dashboard's page as a static asset. */
import { dashboardAsset } from './dashboard/asset-feature.ts';
import { createWholeWorker } from './whole-worker.ts';

const gateway = createWholeWorker(dashboardAsset());

export default gateway;
export const { LedgerObject, ResponseObject } = gateway.objects;
