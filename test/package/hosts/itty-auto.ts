/** Weir mounted in itty-router's AutoRouter, which passes a Proxy of each request. */
import { AutoRouter } from 'itty-router';
import { gateway } from './gateway.ts';

export const { LedgerObject, ResponseObject } = gateway.objects;

const router = AutoRouter();
router.get('/', () => new Response('the host'));
router.all('/ai/*', gateway.fetch);

export default { ...router };
