/** Stands in for the Node packages that Portkey's published build starts: its server, WebSockets and Redis. */

interface App {
  readonly fetch: (request: Request, env: unknown, context: ExecutionContext) => Promise<Response>;
}

let served: App | undefined;

/** The app that was passed to `@hono/node-server`. */
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

/** Replaces `ws` and `ioredis`, which are imported but not used by the bench's requests. */
export default class Absent {}
