/**
 * Row `floor`: the minimal work of a metering gateway. It parses the request and the response, writes one record to KV
 * and logs one line, without checks, routing or translation.
 */
import { type BenchEnv, UPSTREAM_PREFIX } from './upstream.ts';

interface FloorEnv extends BenchEnv {
  readonly WEIR_KV: KVNamespace;
}

interface Answer {
  readonly id?: string;
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null;
}

export default {
  async fetch(request, env, context) {
    const startedAt = Date.now();
    const body: { model: string; stream?: boolean } = JSON.parse(await request.text());
    body.model = body.model.slice(UPSTREAM_PREFIX.length);
    const upstream = await fetch(env.UPSTREAM, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer bench' },
      body: JSON.stringify(body),
    });
    const record = (answer: Answer) => writeRecord(env.WEIR_KV, body.model, answer, startedAt);
    if (body.stream !== true || upstream.body === null) {
      const answer: Answer = JSON.parse(await upstream.text());
      context.waitUntil(record(answer));
      return new Response(JSON.stringify(answer), { headers: { 'content-type': 'application/json' } });
    }
    const { readable, writable } = new IdentityTransformStream();
    context.waitUntil(pump(upstream.body, writable).then(record));
    return new Response(readable, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } });
  },
} satisfies ExportedHandler<FloorEnv>;

/** Sends bytes as they come and parses each event. In this row, no event is split between reads. */
async function pump(body: ReadableStream<Uint8Array>, writable: WritableStream<Uint8Array>): Promise<Answer> {
  const writer = writable.getWriter();
  const decoder = new TextDecoder();
  let last: Answer = {};
  for await (const bytes of body) {
    for (const line of decoder.decode(bytes, { stream: true }).split('\n')) {
      if (!line.startsWith('data: {')) continue;
      const event: Answer = JSON.parse(line.slice('data: '.length));
      if (event.usage) last = event;
    }
    await writer.write(bytes);
  }
  await writer.close();
  return last;
}

async function writeRecord(kv: KVNamespace, model: string, answer: Answer, startedAt: number): Promise<void> {
  const { prompt_tokens, completion_tokens } = answer.usage ?? {};
  const record = { model, prompt_tokens, completion_tokens, total_ms: Date.now() - startedAt };
  await kv.put(`usage/${startedAt}-${crypto.randomUUID()}`, '', { metadata: record });
  // biome-ignore lint/suspicious/noConsole: the line is part of what is measured
  console.log(JSON.stringify({ event: 'request', ...record }));
}
