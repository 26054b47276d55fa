/**
 * Rows `reframe-claude` and `reframe-gemini`: the least that turns one provider's text into chunks of Chat Completions. The JSON text of each delta is
 * copied into a fixed frame; only the last usage is parsed. It knows one stream, checks nothing, and keeps an event that is not complete.
 */
import { type BenchEnv, fetchUpstream } from './upstream.ts';

const BUFFER_BYTES = 16 * 1024;
const START =
  'data: {"id":"bench","object":"chat.completion.chunk","created":1790000000,"model":"bench/any",';
const FRAME = `${START}"choices":[{"index":0,"delta":{"content":`;
const FIRST = `${START}"choices":[{"index":0,"delta":{"role":"assistant","content":`;
const END = '},"logprobs":null,"finish_reason":null}]}\n\n';

/** What surrounds the JSON text of a delta, and what ends an event. */
interface Form {
  readonly before: string;
  readonly after: string;
  readonly end: string;
}

const CLAUDE: Form = { before: '"text_delta","text":', after: '}', end: '\n\n' };
const GEMINI: Form = { before: '"text": ', after: '}],"role"', end: '\r\n\r\n' };

export default {
  async fetch(request, env, context) {
    const { body, headers } = await fetchUpstream(request, env);
    const { readable, writable } = new IdentityTransformStream();
    if (body !== null) context.waitUntil(pump(body, writable));
    return new Response(readable, { headers });
  },
} satisfies ExportedHandler<BenchEnv>;

async function pump(body: ReadableStream<Uint8Array>, writable: WritableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader({ mode: 'byob' });
  const writer = writable.getWriter();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let buffer = new ArrayBuffer(BUFFER_BYTES);
  let held = '';
  let form: Form | null = null;
  let isFirst = true;
  let last = '';
  for (;;) {
    const { value, done } = await reader.read(new Uint8Array(buffer));
    if (done) break;
    const text = held + decoder.decode(value, { stream: true });
    buffer = value.buffer;
    form ??= text.startsWith('data:') ? GEMINI : CLAUDE;
    let out = '';
    let at = 0;
    for (let end = text.indexOf(form.end); end !== -1; end = text.indexOf(form.end, at)) {
      const from = text.indexOf(form.before, at);
      if (from !== -1 && from < end && !text.startsWith('""', from + form.before.length)) {
        const start = from + form.before.length;
        const to = form === CLAUDE ? text.lastIndexOf('"', end) + 1 : text.indexOf(form.after, start);
        out += (isFirst && form === GEMINI ? FIRST : FRAME) + text.slice(start, to) + END;
        isFirst = false;
      } else {
        if (isFirst && form === CLAUDE && text.startsWith('event: message_start', at))
          out += `${FIRST}""${END}`;
        const event = text.slice(at, end);
        if (event.includes('"usage')) last = event;
      }
      at = end + form.end.length;
    }
    held = text.slice(at);
    await writer.write(encoder.encode(out));
  }
  await writer.write(encoder.encode(`${finish(last)}data: [DONE]\n\n`));
  await writer.close();
}

interface LastEvent {
  readonly usage?: { readonly input_tokens: number; readonly output_tokens: number };
  readonly usageMetadata?: {
    readonly promptTokenCount: number;
    readonly candidatesTokenCount: number;
    readonly thoughtsTokenCount: number;
  };
}

function finish(event: string): string {
  const { usage, usageMetadata }: LastEvent = JSON.parse(event.slice(event.indexOf('{')));
  const thoughts = usageMetadata?.thoughtsTokenCount ?? 0;
  const prompt = usage?.input_tokens ?? usageMetadata?.promptTokenCount ?? 0;
  const completion = usage?.output_tokens ?? (usageMetadata?.candidatesTokenCount ?? 0) + thoughts;
  const counts = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...(usage && { prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 } }),
    ...(thoughts > 0 && { completion_tokens_details: { reasoning_tokens: thoughts } }),
  };
  const choices = '"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]';
  return `${START}${choices},"usage":${JSON.stringify(counts)}}\n\n`;
}
