/** Weir mounted in a Hono application. */
import { Hono } from 'hono';
import { mount } from 'hono/mount';
import { type Env, gateway } from './gateway.ts';

export const { LedgerObject, ResponseObject } = gateway.objects;

const app = new Hono<{ Bindings: Env }>();
app.get('/', (c) => c.text('the host'));
// The form that Hono 5 keeps in the place of `app.mount`.
app.all('/ai/v1/models', mount(gateway.fetch, { replaceRequest: false }));
app.all('/ai/*', (c) => gateway.fetch(c.req.raw, c.env, c.executionCtx));

export default app;
