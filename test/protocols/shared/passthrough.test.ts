/** Tests the lane of clients and providers that speak one dialect: events as they came, and all that holds for any stream (N1, N2). */
import { describe, expect, test } from 'vitest';
import { DEFAULT_POLICIES } from '../../../src/canonical/policies.ts';
import { responsesPassthrough } from '../../../src/protocols/openai-responses/passthrough.ts';
import { openaiResponses } from '../../../src/protocols/openai-responses/upstream-reader.ts';
import { PassthroughWriter } from '../../../src/protocols/shared/passthrough-writer.ts';
import { PROVIDERS } from '../../../src/providers/index.ts';
import type { StreamFailure } from '../../../src/stream/types.ts';
import { COMPATIBLE, type Conversion, convertStream, cut } from '../../contract/convert.ts';
import { eventsOf } from '../../contract/reading.ts';
import { framed, readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { compareWays } from '../../stream/both-ways.ts';

const encoder = new TextEncoder();

const FORMAT = {
  heartbeat: (hasBegun: boolean) => (hasBegun ? 'event: ping\n\n' : ': ping\n\n'),
  failure: ({ error }: StreamFailure) => `event: error\ndata: ${error.code}\n\n`,
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

/** Any dialect will do: these are chat's, to the end of each answer. */
const named = readRecordings()
  .filter(({ protocol, kind, text }) => protocol === 'openai' && kind === 'sse' && text.includes('"delta"'))
  .map(({ name, text }) => [name, text] as const);

/** The upstream's events up to the end or the failure, each as a frame, its data as the client gets them. */
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
  test.each(named)('%s: each event as it came, counted as ever, however it is cut', (name, text) => {
    const maker = name.split('--')[0];
    const provider = PROVIDERS.find(({ id }) => id === maker)?.id ?? COMPATIBLE;
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
    responsesPassthrough.streamWriter({ ...options, provider: 'openai', reasoning: 'pass' }),
};

/** With the model under the name by which the client can ask for it. */
function withNamedModel(data: string): string {
  const event = JSON.parse(data);
  if (event.response === undefined) return data;
  const { model } = event.response;
  return JSON.stringify({ ...event, response: { ...event.response, model: `openai/${model}` } });
}

describe.skipIf(recordingsNote !== '')(`N1 recorded Responses on the passthrough${recordingsNote}`, () => {
  const responses = readRecordings().filter(({ protocol }) => protocol === 'responses');

  test.each(responses.map((recording) => [recording.name, recording] as const))(
    '%s: each event as it came but for the model, on either path, however it is cut; most texts take the fast one',
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
    const responses = readRecordings().filter(({ protocol }) => protocol === 'responses');
    const stripping: Conversion = {
      ...RESPONSES,
      policies: { ...DEFAULT_POLICIES, reasoning: 'strip' },
      openWriter: (options) =>
        responsesPassthrough.streamWriter({ ...options, provider: 'openai', reasoning: 'strip' }),
    };

    test.each(responses.map((recording) => [recording.name, recording] as const))(
      '%s: no text of reasoning, numbers without a gap, the tokens and all else as it came, however it is cut',
      (_, recording) => {
        const text = framed(recording);
        const bytes = encoder.encode(text);
        const native = convertStream([bytes], stripping);
        if (native.error !== null) return;
        const told = [...eventsOf(native.text)].map(({ data }) => JSON.parse(data));
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
        expect(told.map(bare)).toEqual(kept.map(bare));
        expect(JSON.stringify(told)).not.toMatch(/summary_text|reasoning_text/);
        const numbers = told.flatMap(({ sequence_number }) => sequence_number ?? []).map(Number);
        expect(numbers).toEqual(numbers.map((__, at) => (numbers[0] ?? 0) + at));
        for (const size of [64, 7]) {
          expect(convertStream(cut(bytes, size), stripping).text).toBe(native.text);
        }
        const unstripped = convertStream([bytes], RESPONSES);
        expect(native.accumulator.countUsage()).toEqual(unstripped.accumulator.countUsage());
      },
    );

    test('cut behind reasoning: what ends the stream is numbered from what the client got', () => {
      const { text = '' } = responses.find(({ name }) => name === 'xai--responses-parallel-tools.sse') ?? {};
      const start = text.slice(0, text.lastIndexOf('event: response.completed'));
      const native = convertStream([encoder.encode(start)], stripping).text;
      const numbers = [...native.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
      expect(numbers).toEqual(numbers.map((_, at) => at));
      expect(native).toContain('event: response.failed');
    });
  },
);

describe('A8 the texts of Responses on the passthrough', () => {
  const named = (type: string, members: string) => `event: ${type}\ndata: {"type":"${type}",${members}}\n\n`;
  /** As OpenAI writes them: each has its number, and a padding that makes all of them equally long. */
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

  test('each behind the first, which begins the answer, and the second, which is learned, takes the fast path, whatever its number, its padding and its item', () => {
    const frames = texts.map((text, at) => delta(text, 8 + at));
    expect(both(frames)).toEqual([6, 6, 6, 6]);
    const other = delta(' and', 1000).replace('msg_1', 'msg_2');
    expect(both([...frames, other])).toEqual([7, 7, 7, 7]);
  });

  test.each(['0123', '-1', '1.5', '1e3', 'null', '"8"', '1234567890123456'])(
    'the number %s: the slow path decides what becomes of it',
    (number) => {
      const before = texts.slice(0, 3).map((text, at) => delta(text, at));
      const odd = delta(' odd', 9).replace('"sequence_number":9', `"sequence_number":${number}`);
      const reads = [encoder.encode([BEGIN, ...before, odd, END].join(''))];
      expect(compareWays(reads, RESPONSES).copiedEvents).toBe(1);
    },
  );

  test('a member that is there twice, nested or beside a text of its name: as it came', () => {
    const nested = (at: number) => delta('a', at, `,"meta":{"sequence_number":${at},"delta":"a"}`);
    expect(both([nested(1), nested(1), nested(2)])[0]).toBeLessThan(3);
    const doubled = (at: number) => delta('a', at, `,"sequence_number":${at}`);
    expect(both([doubled(1), doubled(1), doubled(2)])[0]).toBeLessThan(3);
  });

  test('cut behind texts of the fast path: what ends the stream is numbered from there on', () => {
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

  test('cut by its upstream: what came, and the protocol’s own error', () => {
    const { text } = convertStream([encoder.encode(TEXT)], conversionOf('openai'));
    expect(text).toBe(`${TEXT}event: error\ndata: upstream_truncated\n\n`);
  });

  test('ended by [DONE] without the protocol’s own end: the protocol’s own error', () => {
    const { text } = convertStream([encoder.encode(`${TEXT}data: [DONE]\n\n`)], conversionOf('openai'));
    expect(text).toBe(`${TEXT}event: error\ndata: upstream_truncated\n\n`);
  });

  test('an error of its upstream’s: in Weir’s words alone, as the upstream’s may hold a credential', () => {
    const failed = `${TEXT}event: error\ndata: {"error":{"message":"key the-deployment-credential"}}\n\n`;
    const { text } = convertStream([encoder.encode(failed)], conversionOf('openai'));
    expect(text).toMatch(/event: error\ndata: \w+\n\n$/);
    expect(text).not.toContain('credential');
  });

  test('an event larger than the bound: the answer fails', () => {
    const large = `data: {"x":"${'y'.repeat(5000)}"}\n\n`;
    const conversion = { ...conversionOf('openai'), maxEventBytes: 1000 };
    expect(convertStream([encoder.encode(large)], conversion).error?.code).toBe('upstream_event_too_large');
  });

  test('T1 heartbeats: by whether the client has had an event', () => {
    const writer = new PassthroughWriter(() => FORMAT, 1000);
    const taken = () => new TextDecoder().decode(writer.output.take());
    writer.heartbeat(false);
    expect(taken()).toBe(': ping\n\n');
    writer.event('a', '{}', {});
    expect(taken()).toBe('event: a\ndata: {}\n\n');
    writer.heartbeat(true);
    expect(taken()).toBe(': ping\n\n');
    writer.heartbeat(false);
    expect(taken()).toBe('event: ping\n\n');
    writer.restart();
    writer.heartbeat(false);
    expect(taken()).toBe(': ping\n\n');
  });
});
