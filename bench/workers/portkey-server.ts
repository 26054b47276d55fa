/** Stands in for the Node packages that Portkey's published build starts: its server, WebSockets and Redis. */

interface App {
  readonly fetch: (request: Request, env: unknown, context: ExecutionContext) => Promise<Response>;
}

let served: App | undefined;

/** What `@hono/node-server` was asked to serve. */
export function servedApp(): App | undefined {
  return served;
}

export function serve(app: App): never {
  served = app;
  throw new Error('The app is served by workerd');
}

export function createNodeWebSocket() {
  return { injectWebSocket: () => {}, upgradeWebSocket: () => () => new Response(null, { status: 501 }) };
}

/** `ws` and `ioredis`: imported at the top, used by no request of the bench. */
export default class Absent {}
