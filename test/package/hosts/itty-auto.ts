/** Weir mounted in itty-router's AutoRouter, which passes a Proxy of each request. */
import { AutoRouter } from 'itty-router';
import { gateway } from './gateway.ts';

export { LedgerObject } from 'weir-gateway/worker';
export const { ResponseObject } = gateway;

const router = AutoRouter();
router.get('/', () => new Response('the host'));
router.all('/ai/*', gateway.fetch);

export default { ...router };
