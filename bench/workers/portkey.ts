/** Rows `portkey-*`: the published package, whose Node server is taken off it, so that workerd serves its app. */
import { servedApp } from './portkey-server.ts';

try {
  await import('@portkey-ai/gateway/build/start-server.js');
} catch (error) {
  // Everything after the server's start writes to a terminal: the stand-in server ends the package there.
  if (servedApp() === undefined) throw error;
}

export default {
  fetch: (request, env, context) =>
    servedApp()?.fetch(request, env, context) ?? new Response('Portkey did not start', { status: 500 }),
} satisfies ExportedHandler<unknown>;
