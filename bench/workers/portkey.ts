/** Rows `portkey-*`: the published package without its Node server, so that workerd serves its app. */
import { servedApp } from './portkey-server.ts';

try {
  await import('@portkey-ai/gateway/build/start-server.js');
} catch (error) {
  // The code after the server's start writes to a terminal. The replaced server stops the package there.
  if (servedApp() === undefined) throw error;
}

export default {
  fetch: (request, env, context) =>
    servedApp()?.fetch(request, env, context) ?? new Response('Portkey did not start', { status: 500 }),
} satisfies ExportedHandler<unknown>;
