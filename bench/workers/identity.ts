/** Row `identity`: one TransformStream in JavaScript that passes the bytes through. */
import { type BenchEnv, fetchUpstream } from './upstream.ts';

export default {
  async fetch(request, env) {
    const { body, headers } = await fetchUpstream(request, env);
    const identity = new TransformStream<Uint8Array, Uint8Array>({
      transform: (bytes, controller) => controller.enqueue(bytes),
    });
    return new Response(body?.pipeThrough(identity), { headers });
  },
} satisfies ExportedHandler<BenchEnv>;
