/**
 * The fast path against the normal one over streams of a grammar, as many frames as `GRAMMAR_FRAMES`:
 * GRAMMAR_FRAMES=5000000 npx vitest run --mode slow test/stream/fast-path/grammar
 */
import { describe, expect, test } from 'vitest';
import { type Conversion, convertStream, cut } from '../../contract/convert.ts';
import { compareWays } from '../both-ways.ts';
import { grammarStream } from '../grammar-streams.ts';

const FRAMES = Number(process.env.GRAMMAR_FRAMES ?? 30_000);
/** The first stream's seed: a failure reports its own. */
const FIRST_SEED = Number(process.env.GRAMMAR_FROM ?? 1);
/** Many envelopes cannot be learned, and many streams end early. */
const LEAST_SHARE_OF_HITS = 0.1;
/** Only a hang reaches it: an idle machine takes a tenth of a millisecond. */
const LIMIT_MS_A_FRAME = 40;

const CHAT: Conversion = { provider: 'compatible', route: 'chat', model: 'm', usageChunk: true };
const encoder = new TextEncoder();

test(
  `TemplateFastPath, ${FRAMES} frames of a grammar: same output as the slow path, however they are cut`,
  () => {
    let read = 0;
    let hits = 0;
    for (let seed = FIRST_SEED; read < FRAMES; seed++) {
      const { reads, conversion } = grammarStream(seed);
      try {
        const { events, copiedEvents } = compareWays(reads, conversion);
        read += events;
        hits += copiedEvents;
      } catch (error) {
        throw new Error(`It fails from GRAMMAR_FROM=${seed}`, { cause: error });
      }
    }
    expect(hits).toBeGreaterThan(read * LEAST_SHARE_OF_HITS);
  },
  FRAMES * LIMIT_MS_A_FRAME,
);

/** Cases in which an earlier fast path differed from the normal path. */
describe('TemplateFastPath, a text that equals', () => {
  function compare(events: readonly string[], conversion: Conversion = CHAT): string {
    const text = events.map((data) => `data: ${data}\n\n`).join('');
    const bytes = encoder.encode(`${text}data: [DONE]\n\n`);
    for (const size of [bytes.length, 64, 1]) compareWays([...cut(bytes, size)], conversion);
    return convertStream([bytes], conversion).text;
  }

  test('the mark, written with an escape: it is found at its position', () => {
    const marked = (real: string, other: string) =>
      `{"meta":{"content":"${other}"},"choices":[{"index":0,"delta":{"content":"${real}"}}]}`;
    const text = compare([
      marked('Hi', 'd'),
      marked('weir\\u00a4text', 'd1'),
      marked('weir\\u00a4text', 'ANOTHER WORD'),
    ]);
    expect(text).not.toContain('ANOTHER WORD');
  });

  test('a discriminator of typed content: nothing of the text is lost', () => {
    const thinking = (text: string) =>
      `{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"first half, "}]}],"reasoning_content":"${text}"}}]}`;
    const text = compare(['x', 'thinking', 'thinking', 'text', 'text', 'text'].map(thinking));
    expect(text.match(/first half, /g)).toHaveLength(6);
  });

  test.each(['type', 'object', '\\u006fbject'])('the value of %s: an error is still an error', (key) => {
    const typed = (value: string) =>
      `{"${key}":"${value}","choices":[{"index":0,"delta":{"content":"${value}"}}]}`;
    expect(compare(['Hi', 'chunk', 'chunk', 'error', 'after'].map(typed))).not.toContain('after');
  });

  test.each(['index', 'object', 'content', 'choices', 'delta'])(
    'the key %s: it does not become a hole',
    (key) => {
      const keyed = (text: string) =>
        `{"object":"chunk","choices":[{"index":0,"delta":{"content":"${text}"}}]}`;
      compare([keyed('Hi'), keyed(key), keyed(key), keyed('b'), keyed(key)]);
    },
  );

  test('B1 more than an event may have: refused on both paths', () => {
    const small = { ...CHAT, maxEventBytes: 1000 };
    const long = (length: number) => `{"choices":[{"index":0,"delta":{"content":"${'x'.repeat(length)}"}}]}`;
    expect(compare([long(1), long(2), long(3), long(1500), long(4)], small)).toContain(
      'upstream_event_too_large',
    );
  });
});
