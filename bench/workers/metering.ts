/** What the floors of requests share: the bytes that are passed on, and the record. */
import type { BenchEnv } from './upstream.ts';

export interface MeteredEnv extends BenchEnv {
  readonly WEIR_KV: KVNamespace;
}

export interface Answer {
  readonly id?: string;
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null;
}

/** Sends bytes as they come and parses each event. These rows are called with one frame, so no event is split between reads. */
export async function pump(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
): Promise<Answer> {
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

/**
 * The record that answers an operator's questions, with the names and in the places that Weir's has: whole in the value, short in the
 * metadata, and in the log. `bench/load/kv.ts` counts the bytes of both.
 */
export async function writeRecord(
  kv: KVNamespace,
  model: string,
  answer: Answer,
  startedAt: number,
): Promise<void> {
  const { prompt_tokens = 0, completion_tokens = 0 } = answer.usage ?? {};
  const endedAt = Date.now();
  const request_id = crypto.randomUUID();
  const total_tokens = prompt_tokens + completion_tokens;
  const cost_nanos = prompt_tokens * 280 + completion_tokens * 420;
  const total_ms = endedAt - startedAt;
  const time = new Date(startedAt).toISOString();
  const record = {
    request_id,
    time,
    ended: new Date(endedAt).toISOString(),
    ...{ key_id: 'open', user: null, session: null, app: null, tags: {} },
    ...{ asked: `bench/${model}`, provider: 'bench', model, route: 'chat', client: 'chat' },
    ...{ status: 'finished', error_code: null, error: null, fault: null, finish_reason: 'stop' },
    ...{ prompt_tokens, completion_tokens, total_tokens, cached_tokens: null, cache_write_tokens: null },
    ...{ reasoning_tokens: null, vendor_events: 0, vendor_tokens: 0, estimated: false },
    ...{ cost_nanos, currency: 'USD', cost_source: 'table', price_since: PRICE_SINCE, cost_estimated: false },
    ...{ first_token_ms: total_ms, total_ms, bytes_out: 500 },
    attempts: [{ provider: 'bench', model, status: 200, error_code: null, ms: total_ms }],
  };
  const metadata = {
    ...{ id: request_id, t: time, k: 'open', p: 'bench', m: model, r: 'chat', s: 'finished', f: 'stop' },
    ...{
      pt: prompt_tokens,
      ct: completion_tokens,
      tt: total_tokens,
      ve: 0,
      vt: 0,
      ft: total_ms,
      ms: total_ms,
    },
    ...{ b: 500, x: 0, c: cost_nanos, cu: 'USD', cs: 2, ps: PRICE_SINCE_SECONDS },
  };
  await kv.put(`usage/${time.slice(0, 10)}/open/${request_id}`, JSON.stringify(record), { metadata });
  // biome-ignore lint/suspicious/noConsole: the line is part of what is measured
  console.log(JSON.stringify({ event: 'request', ...record }));
}

const PRICE_SINCE = '2026-09-01T00:00:00.000Z';
const PRICE_SINCE_SECONDS = 1_788_220_800;
