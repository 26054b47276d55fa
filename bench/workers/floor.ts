/**
 * Row `floor`: the minimal work of a metering gateway. It parses the request and the response, writes one record to KV
 * and logs it, both with as many bytes as Weir's, without checks, routing or translation.
 */
import { type Answer, type MeteredEnv, pump, writeRecord } from './metering.ts';
import { UPSTREAM_PREFIX } from './upstream.ts';

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
} satisfies ExportedHandler<MeteredEnv>;
