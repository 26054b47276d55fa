/** Weir mounted in an itty-router application. */
import { Router } from 'itty-router';
import { gateway } from './gateway.ts';

export const { LedgerObject, ResponseObject } = gateway.objects;

const router = Router();
router.get('/', () => new Response('the host'));
router.all('/ai/*', gateway.fetch);

export default { ...router };
