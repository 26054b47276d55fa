/** Row `identity-byob`: bytes read into one buffer and written to an IdentityTransformStream, unchanged. */
import { pumpedBy } from './upstream.ts';

const BUFFER_BYTES = 16 * 1024;

export default pumpedBy(pump);

async function pump(body: ReadableStream<Uint8Array>, writable: WritableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader({ mode: 'byob' });
  const writer = writable.getWriter();
  let buffer = new ArrayBuffer(BUFFER_BYTES);
  for (;;) {
    const { value, done } = await reader.read(new Uint8Array(buffer));
    if (done) break;
    await writer.write(value);
    buffer = value.buffer;
  }
  await writer.close();
}
