/** Tests usage of providers whose completion count excludes reasoning: it is added, as in OpenAI's counts (U3). */
import { describe, expect, test } from 'vitest';
import { costAtPrice } from '../../../src/metering/pricing/cost.ts';
import { UsageAccumulator } from '../../../src/metering/request-meter.ts';
import { openaiResponses } from '../../../src/protocols/openai-responses/upstream-reader.ts';
import type { JsonObject } from '../../../src/shared/json.ts';
import type { UpstreamProtocol } from '../../../src/stream/types.ts';
import { objectOf } from '../../../tools/conformance/contract/json.ts';
import { framed, readRecordings, recordingsNote } from '../../contract/recordings.ts';
import { price } from '../../metering/pricing/prices.ts';
import { providerNamed } from '../../request-translation/send.ts';

/** The usage accumulated from a provider's events; the protocol is chat by default. */
function usageOf(id: string, events: readonly JsonObject[], protocol?: UpstreamProtocol) {
  const { endpoints, quirks = {} } = providerNamed(id);
  const accumulator = new UsageAccumulator(() => 0, 0);
  const reader = (protocol ?? endpoints.chat?.protocol)?.open(quirks, 'p');
  for (const event of events) {
    const usage = reader?.event(event, '')?.usage;
    if (usage) accumulator.usage(usage);
  }
  return accumulator.countBilled().usage;
}

const event = (prompt: number, completion: number, total: number, reasoning: number) => ({
  choices: [],
  usage: {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
    completion_tokens_details: { reasoning_tokens: reasoning },
  },
});

describe('reasoning that a provider does not include in completion_tokens', () => {
  test.each<[what: string, provider: string, reported: JsonObject, sums: number[]]>([
    // shared/streams/xai--text.
    ['xAI: reasoning is added to the completion', 'xai', event(165, 2, 296, 129), [165, 131, 296]],
    ['xAI, reasoning already included: unchanged', 'xai', event(165, 131, 296, 129), [165, 131, 296]],
    ['xAI, a total of zero: the sum', 'xai', event(165, 131, 0, 129), [165, 131, 296]],
    ['any other provider: unchanged', 'tolerant', event(165, 2, 296, 129), [165, 2, 296]],
  ])('U3 %s', (_, provider, reported, sums) => {
    const { prompt_tokens, completion_tokens, total_tokens } = usageOf(provider, [reported]);
    expect([prompt_tokens, completion_tokens, total_tokens]).toEqual(sums);
  });

  test('U5 usage in a field that the quirks name is read; the same field of another provider is not', () => {
    const { usage, ...rest } = event(165, 2, 167, 0);
    const chunk = { ...rest, x_groq: { usage } };
    expect(usageOf('groq', [chunk]).total_tokens).toBe(167);
    expect(usageOf('xai', [chunk]).total_tokens).toBe(0);
  });

  test('U5 xAI sends the running total on every chunk: the last one counts', () => {
    const { completion_tokens } = usageOf('xai', [event(5, 0, 8, 3), event(5, 1, 12, 6), event(5, 4, 15, 6)]);
    expect(completion_tokens).toBe(10);
  });

  test('P4 xAI: the cost is the same whether reasoning is in the completion or only in the total', () => {
    const usage = usageOf('xai', [event(165, 2, 296, 129)]);
    const reported = { ...usage, completion_tokens: 2 };
    const costs = [usage, reported].map((one) => costAtPrice(one, price({ input: 1, output: 10 }), 0)?.nano);
    expect(costs).toEqual([165_000 + 1_310_000, 165_000 + 1_310_000]);
  });
});

const recordings = readRecordings().filter(({ name }) => name.startsWith('xai--'));

describe.skipIf(recordingsNote !== '')(`recorded streams of xAI${recordingsNote}`, () => {
  test.each(recordings.map((recording) => [recording.name, recording] as const))(
    'U3 %s: the total is the sum of prompt and completion, which includes the reasoning',
    (_, recording) => {
      const events = framed(recording).matchAll(/^data: ?(\{.*)$/gm);
      const protocol = recording.protocol === 'responses' ? openaiResponses : undefined;
      const read = [...events].map(([, json = '']) => objectOf(JSON.parse(json)));
      const usage = usageOf('xai', read, protocol);
      expect(usage.prompt_tokens + usage.completion_tokens).toBe(usage.total_tokens);
      const reasoning = usage.completion_tokens_details?.reasoning_tokens;
      expect(reasoning).toBeGreaterThan(0);
      expect(usage.completion_tokens).toBeGreaterThan(reasoning ?? 0);
    },
  );
});
