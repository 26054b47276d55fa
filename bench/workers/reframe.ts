/**
 * Rows `reframe-claude` and `reframe-gemini`: a plain loop that turns one provider's text into chunks of Chat
 * Completions. It copies the JSON text of each delta into a fixed frame, and parses the last usage only. It knows two
 * streams of the bench and checks nothing.
 */
import { pumpedBy } from './upstream.ts';

const BUFFER_BYTES = 16 * 1024;
const START =
  'data: {"id":"bench","object":"chat.completion.chunk","created":1790000000,"model":"bench/any",';
const BEFORE_TEXT = `${START}"choices":[{"index":0,"delta":{"content":`;
const AFTER_TEXT = '},"logprobs":null,"finish_reason":null}]}\n\n';
const FIRST_CHUNK = `${START}"choices":[{"index":0,"delta":{"role":"assistant","content":""${AFTER_TEXT}`;

/** Where an event of a stream has its text, as JSON. */
interface Form {
  readonly beforeText: string;
  /** The index behind the text that begins at `start`, in an event that ends at `end`. */
  readonly endOfText: (events: string, start: number, end: number) => number;
  readonly eventEnd: string;
}

const CLAUDE: Form = {
  beforeText: '"text_delta","text":',
  endOfText: (events, _, end) => events.lastIndexOf('"', end) + 1,
  eventEnd: '\n\n',
};
const GEMINI: Form = {
  beforeText: '"text": ',
  endOfText: (events, start) => events.indexOf('}],"role"', start),
  eventEnd: '\r\n\r\n',
};

export default pumpedBy(pump);

async function pump(body: ReadableStream<Uint8Array>, writable: WritableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader({ mode: 'byob' });
  const writer = writable.getWriter();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let buffer = new ArrayBuffer(BUFFER_BYTES);
  let form: Form | null = null;
  let events = '';
  let lastUsage = '';
  for (;;) {
    const { value, done } = await reader.read(new Uint8Array(buffer));
    if (done) break;
    events += decoder.decode(value, { stream: true });
    buffer = value.buffer;
    form ??= events.startsWith('data:') ? GEMINI : CLAUDE;
    let chunks = '';
    let at = 0;
    for (let end = events.indexOf(form.eventEnd); end !== -1; end = events.indexOf(form.eventEnd, at)) {
      const found = events.indexOf(form.beforeText, at);
      const start = found + form.beforeText.length;
      // Gemini's last event has an empty text.
      const hasText = found !== -1 && start < end && !events.startsWith('""', start);
      if (hasText)
        chunks += BEFORE_TEXT + events.slice(start, form.endOfText(events, start, end)) + AFTER_TEXT;
      else if (events.startsWith('event: message_start', at)) chunks += FIRST_CHUNK;
      else if (events.slice(at, end).includes('"usage')) lastUsage = events.slice(at, end);
      at = end + form.eventEnd.length;
    }
    events = events.slice(at);
    await writer.write(encoder.encode(chunks));
  }
  await writer.write(encoder.encode(`${finish(lastUsage)}data: [DONE]\n\n`));
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
