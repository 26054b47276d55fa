/** Weir without features, mounted in a Hono application that has a page and variables of its own. */
import { Hono } from 'hono';
import { weir } from 'weir-gateway';

const gateway = weir<{ readonly ORIGIN?: string }>({ basePath: '/ai', auth: 'keys', features: [] });

const app = new Hono<{ Bindings: { readonly ORIGIN?: string } }>();
app.get('/dashboard', (c) => c.text("the host's own dashboard"));
app.all('/ai/*', (c) => gateway.fetch(c.req.raw, c.env, c.executionCtx));

export default app;
