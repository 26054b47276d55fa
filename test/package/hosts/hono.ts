/** Weir mounted in a Hono application. */
import { Hono } from 'hono';
import { type Env, gateway } from './gateway.ts';

export { LedgerObject } from 'weir-gateway/worker';

const app = new Hono<{ Bindings: Env }>();
app.get('/', (c) => c.text('the host'));
app.all('/ai/*', (c) => gateway.fetch(c.req.raw, c.env, c.executionCtx));

export default app;
