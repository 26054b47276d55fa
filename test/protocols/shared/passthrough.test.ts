/** Tests the passthrough: events pass unchanged, and what holds for every stream holds here too. */
import { describe, expect, test } from 'vitest';
import { responsesPassthrough } from '../../../src/protocols/openai-responses/passthrough.ts';
import { openaiResponses } from '../../../src/protocols/openai-responses/upstream-reader.ts';
import { PassthroughWriter } from '../../../src/protocols/shared/passthrough-writer.ts';
import type { StreamFailure } from '../../../src/stream/types.ts';
import { eventsOf } from '../../../tools/conformance/contract/content.ts';
import { DEFAULT_POLICIES } from '../../canonical/default-policies.ts';
import { type Conversion, convertStream, cut, recordedProvider } from '../../contract/convert.ts';
import { framed, readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { compareWays } from '../../stream/both-ways.ts';

const encoder = new TextEncoder();

const FORMAT = {
  heartbeat: (hasBegun: boolean) => (hasBegun ? 'event: ping\n\n' : ': ping\n\n'),
  failure: ({ error }: StreamFailure) => `event: error\ndata: ${error.code}\n\n`,
  limit: () => 'event: limit\ndata: {}\n\n',
};

function conversionOf(provider: string): Conversion {
  return {
    provider,
    route: 'chat',
    model: 'asked-for',
    usageChunk: true,
    openWriter: ({ maxEventBytes }) => new PassthroughWriter(() => FORMAT, maxEventBytes),
  };
}

/** The protocol does not matter for these tests: these are streams of chat. */
const named = readRecordings()
  .filter(({ protocol, kind, text }) => protocol === 'openai' && kind === 'sse' && text.includes('"delta"'))
  .map(({ name, text }) => [name, text] as const);

/** The frames of the upstream's events up to the end or the failure. */
function eventFrames(text: string, own = (data: string) => data): string {
  let frames = '';
  for (const { name, data } of eventsOf(text)) {
    if (data.trim() === '[DONE]') break;
    if (data.trim() === '') continue;
    const head = name === '' ? '' : `event: ${name}\n`;
    frames += `${head}${own(data)
      .split('\n')
      .map((line) => `data: ${line}\n`)
      .join('')}\n`;
  }
  return frames;
}

describe.skipIf(recordingsNote !== '')(`N1 recorded streams on the passthrough${recordingsNote}`, () => {
  test.each(named)('%s: each event is unchanged and metered, however the stream is split', (name, text) => {
    const provider = recordedProvider(name);
    const conversion = conversionOf(provider);
    const bytes = encoder.encode(text);
    const native = convertStream([bytes], conversion);
    if (native.error === null) expect(native.text).toBe(eventFrames(text));
    else expect(eventFrames(text).startsWith(native.text.split('event: error')[0] ?? '')).toBe(true);
    expect(convertStream(cut(bytes, 7), conversion).text).toBe(native.text);
    const chat = convertStream([bytes], { ...conversion, openWriter: undefined });
    expect(native.accumulator.countUsage()).toEqual(chat.accumulator.countUsage());
    expect(native.copiedEvents).toBe(chat.copiedEvents);
    expect(convertStream([bytes], { ...conversion, fastPath: false }).text).toBe(native.text);
  });
});

const RESPONSES: Conversion = {
  ...conversionOf('openai'),
  protocol: openaiResponses,
  openWriter: (options) =>
    responsesPassthrough(null).streamWriter({ ...options, provider: 'openai', reasoning: 'pass' }),
};

/** With the model's name in the gateway. */
function withNamedModel(data: string): string {
  const event = JSON.parse(data);
  if (event.response === undefined) return data;
  const { model } = event.response;
  return JSON.stringify({ ...event, response: { ...event.response, model: `openai/${model}` } });
}

/** Its server sends arguments only in their last event, so that an event is added (O7). */
const LATE = 'lmstudio--responses-tool-call.jsonl';
const RESPONSES_RECORDINGS = readRecordings().filter(({ protocol }) => protocol === 'responses');

describe.skipIf(recordingsNote !== '')(`N1 recorded Responses on the passthrough${recordingsNote}`, () => {
  const responses = RESPONSES_RECORDINGS.filter(({ name }) => name !== LATE);

  test('O7 a recording with arguments only in their last event: one delta has them, and nothing else is added', () => {
    const [recording] = RESPONSES_RECORDINGS.filter(({ name }) => name === LATE);
    if (recording === undefined) return;
    const read = (text: string) => [...eventsOf(text)].map(({ data }) => JSON.parse(data));
    const received = read(convertStream([encoder.encode(framed(recording))], RESPONSES).text);
    const sent = read(framed(recording)).map(({ type }) => type);
    const at = sent.indexOf('response.function_call_arguments.done');
    const type = 'response.function_call_arguments.delta';
    expect(received.map((event) => event.type)).toEqual(sent.toSpliced(at, 0, type));
    expect(received[at].delta).toBe(received[at + 1].arguments);
    expect(received[at]).toMatchObject({
      item_id: received[at + 1].item_id,
      output_index: received[at + 1].output_index,
    });
    expect(received.map((event) => event.sequence_number)).toEqual(received.map((_, index) => index));
  });

  test.each(responses.map((recording) => [recording.name, recording] as const))(
    '%s: only the model changes, on either path, however the stream is split; the fast path copies most texts',
    (_, recording) => {
      const text = framed(recording);
      const bytes = encoder.encode(text);
      const native = compareWays([bytes], RESPONSES);
      if (native.error === null) expect(native.text).toBe(eventFrames(text, withNamedModel));
      for (const size of [64, 7]) {
        const way = compareWays([...cut(bytes, size)], RESPONSES);
        expect(way.text).toBe(native.text);
        expect(way.copiedEvents).toBe(native.copiedEvents);
      }
      const texts = text.match(/"type":"response\.(?:output_text|reasoning_summary_text)\.delta"/g) ?? [];
      if (texts.length > 20) expect(native.copiedEvents).toBeGreaterThan(texts.length / 2);
    },
  );
});

describe.skipIf(recordingsNote !== '')(
  `C6 recorded Responses on the passthrough, stripped${recordingsNote}`,
  () => {
    const responses = RESPONSES_RECORDINGS.filter(({ name }) => name !== LATE);
    const stripping: Conversion = {
      ...RESPONSES,
      policies: { ...DEFAULT_POLICIES, reasoning: 'strip' },
      openWriter: (options) =>
        responsesPassthrough(null).streamWriter({ ...options, provider: 'openai', reasoning: 'strip' }),
    };

    test.each(responses.map((recording) => [recording.name, recording] as const))(
      '%s: no reasoning text, numbers without gaps, everything else unchanged, however the stream is split',
      (_, recording) => {
        const text = framed(recording);
        const bytes = encoder.encode(text);
        const native = convertStream([bytes], stripping);
        if (native.error !== null) return;
        const received = [...eventsOf(native.text)].map(({ data }) => JSON.parse(data));
        const sent = [...eventsOf(text)]
          .filter(({ data }) => data.trim() !== '[DONE]')
          .map(({ data }) => JSON.parse(withNamedModel(data)));
        const isReasoning = ({ type, part }: { type: string; part?: { type?: string } }) =>
          type.includes('.reasoning') || part?.type === 'reasoning_text';
        const kept = sent.filter((event) => !isReasoning(event));
        const bare = (event: unknown) =>
          JSON.parse(JSON.stringify(event), (key, value) => {
            if (key === 'sequence_number') return undefined;
            if (value?.type !== 'reasoning') return value;
            return { ...value, summary: [], ...(value.content === undefined ? {} : { content: [] }) };
          });
        expect(received.map(bare)).toEqual(kept.map(bare));
        expect(JSON.stringify(received)).not.toMatch(/summary_text|reasoning_text/);
        const numbers = received.flatMap(({ sequence_number }) => sequence_number ?? []).map(Number);
        expect(numbers).toEqual(numbers.map((__, at) => (numbers[0] ?? 0) + at));
        for (const size of [64, 7]) {
          expect(convertStream(cut(bytes, size), stripping).text).toBe(native.text);
        }
        const unstripped = convertStream([bytes], RESPONSES);
        expect(native.accumulator.countUsage()).toEqual(unstripped.accumulator.countUsage());
      },
    );

    test('truncated after reasoning: the last events continue the client’s numbers', () => {
      const { text = '' } = responses.find(({ name }) => name === 'xai--responses-parallel-tools.sse') ?? {};
      const start = text.slice(0, text.lastIndexOf('event: response.completed'));
      const native = convertStream([encoder.encode(start)], stripping).text;
      const numbers = [...native.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
      expect(numbers).toEqual(numbers.map((_, at) => at));
      expect(native).toContain('event: response.failed');
    });
  },
);

describe('A8 texts of Responses on the passthrough', () => {
  const named = (type: string, members: string) => `event: ${type}\ndata: {"type":"${type}",${members}}\n\n`;
  /** In OpenAI's form: each event has a number, and padding that makes all events equally long. */
  const delta = (text: string, number: number, more = '') =>
    named(
      'response.output_text.delta',
      `"content_index":0,"delta":"${text}","item_id":"msg_1","logprobs":[],"obfuscation":"${'x'.repeat(9 - text.length)}","output_index":0,"sequence_number":${number}${more}`,
    );
  const BEGIN = named('response.created', '"response":{"id":"resp_1","model":"m","status":"in_progress"}');
  const END = named('response.completed', '"response":{"id":"resp_1","model":"m","status":"completed"}');
  const texts = ['The', ' gate', ' is', ' open', '.', ' So', ' it', ' is'];

  function both(frames: readonly string[]) {
    const text = [BEGIN, ...frames, END].join('');
    const ways = [1e5, 64, 7, 1].map((size) => compareWays([...cut(encoder.encode(text), size)], RESPONSES));
    for (const way of ways) expect(way.text).toBe(text.replaceAll('"model":"m"', '"model":"openai/m"'));
    return ways.map(({ copiedEvents }) => copiedEvents);
  }

  test('after the first two, all take the fast path, whatever their number, padding and item', () => {
    const frames = texts.map((text, at) => delta(text, 8 + at));
    expect(both(frames)).toEqual([6, 6, 6, 6]);
    const other = delta(' and', 1000).replace('msg_1', 'msg_2');
    expect(both([...frames, other])).toEqual([7, 7, 7, 7]);
  });

  test.each(['0123', '-1', '1.5', '1e3', 'null', '"8"', '1234567890123456'])(
    'the number %s takes the slow path',
    (number) => {
      const before = texts.slice(0, 3).map((text, at) => delta(text, at));
      const odd = delta(' odd', 9).replace('"sequence_number":9', `"sequence_number":${number}`);
      const reads = [encoder.encode([BEGIN, ...before, odd, END].join(''))];
      expect(compareWays(reads, RESPONSES).copiedEvents).toBe(1);
    },
  );

  test('duplicate members, also nested ones, stay unchanged', () => {
    const nested = (at: number) => delta('a', at, `,"meta":{"sequence_number":${at},"delta":"a"}`);
    expect(both([nested(1), nested(1), nested(2)])[0]).toBeLessThan(3);
    const doubled = (at: number) => delta('a', at, `,"sequence_number":${at}`);
    expect(both([doubled(1), doubled(1), doubled(2)])[0]).toBeLessThan(3);
  });

  test('truncated after texts of the fast path: the last events continue the numbers', () => {
    const frames = texts.map((text, at) => delta(text, 1 + at));
    const reads = [encoder.encode(BEGIN.replace('}\n\n', ',"sequence_number":0}\n\n') + frames.join(''))];
    const { text, copiedEvents } = compareWays(reads, RESPONSES);
    expect(copiedEvents).toBe(6);
    const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
    expect(numbers).toEqual(numbers.map((_, at) => at));
    expect(text).toMatch(/event: error\n.*\n\nevent: response.failed\n/);
  });
});

describe('N2 a stream on the passthrough', () => {
  const TEXT = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n';

  test('truncated by the upstream: the events so far, and the protocol’s error', () => {
    const { text } = convertStream([encoder.encode(TEXT)], conversionOf('openai'));
    expect(text).toBe(`${TEXT}event: error\ndata: upstream_truncated\n\n`);
  });

  test('[DONE] without the protocol’s last event: the protocol’s error', () => {
    const { text } = convertStream([encoder.encode(`${TEXT}data: [DONE]\n\n`)], conversionOf('openai'));
    expect(text).toBe(`${TEXT}event: error\ndata: upstream_truncated\n\n`);
  });

  test('an upstream’s error: only Weir’s text, because the upstream’s may contain a credential', () => {
    const failed = `${TEXT}event: error\ndata: {"error":{"message":"key the-deployment-credential"}}\n\n`;
    const { text } = convertStream([encoder.encode(failed)], conversionOf('openai'));
    expect(text).toMatch(/event: error\ndata: \w+\n\n$/);
    expect(text).not.toContain('credential');
  });

  test('an event larger than the bound: the stream fails', () => {
    const large = `data: {"x":"${'y'.repeat(5000)}"}\n\n`;
    const conversion = { ...conversionOf('openai'), maxEventBytes: 1000 };
    expect(convertStream([encoder.encode(large)], conversion).error?.code).toBe('upstream_event_too_large');
  });

  test('T1 the heartbeat depends on whether the client has received an event', () => {
    const writer = new PassthroughWriter(() => FORMAT, 1000);
    const written = () => new TextDecoder().decode(writer.output.take());
    writer.heartbeat(false);
    expect(written()).toBe(': ping\n\n');
    writer.event('a', '{}', {}, null);
    expect(written()).toBe('event: a\ndata: {}\n\n');
    writer.heartbeat(true);
    expect(written()).toBe(': ping\n\n');
    writer.heartbeat(false);
    expect(written()).toBe('event: ping\n\n');
    writer.restart();
    writer.heartbeat(false);
    expect(written()).toBe(': ping\n\n');
  });
});
