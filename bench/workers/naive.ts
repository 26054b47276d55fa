/** Row `naive`: the common way to write it: TextDecoderStream, a split on blank lines, JSON.parse, one write per frame. */
import { reshape } from './reshape.ts';
import { type BenchEnv, fetchUpstream } from './upstream.ts';

export default {
  async fetch(request, env, context) {
    const { body, headers } = await fetchUpstream(request, env);
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    if (body !== null) context.waitUntil(rewrite(body, writable));
    return new Response(readable, { headers });
  },
} satisfies ExportedHandler<BenchEnv>;

async function rewrite(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  let buffer = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    buffer += value;
    const events = buffer.split('\n\n');
    buffer = events.pop() ?? '';
    for (const event of events) {
      if (!event.startsWith('data: ')) continue;
      const frame = reshape(event.slice('data: '.length));
      if (frame !== '') await writer.write(encoder.encode(frame));
    }
  }
  await writer.close();
}
