/** Row `eventsource-parser`: that package, JSON.parse and JSON.stringify in one TransformStream, one write per read. */
import { createParser } from 'eventsource-parser';
import { reshape } from './reshape.ts';
import { type BenchEnv, fetchUpstream } from './upstream.ts';

export default {
  async fetch(request, env) {
    const { body, headers } = await fetchUpstream(request, env);
    return new Response(body?.pipeThrough(rewriter()), { headers });
  },
} satisfies ExportedHandler<BenchEnv>;

function rewriter(): TransformStream<Uint8Array, Uint8Array> {
  let frames = '';
  const parser = createParser({
    onEvent: ({ data }) => {
      frames += reshape(data);
    },
  });
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  return new TransformStream({
    transform(bytes, controller) {
      parser.feed(decoder.decode(bytes, { stream: true }));
      if (frames === '') return;
      controller.enqueue(encoder.encode(frames));
      frames = '';
    },
  });
}
