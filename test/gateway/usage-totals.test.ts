/** The total of tokens where a provider's counts are incomplete or contradict each other, as OpenAI's SDK sees it (U3). */
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { fetchOf } from './sdk-views.ts';
import { answerWith, DONE, event, ROLE, RoutedGateway, type Script, sse } from './upstreams.ts';

const PROVIDERS = JSON.stringify({
  own: { base_url: 'https://own' },
  grok: { like: 'xai', base_url: 'https://grok' },
});

const COUNTS: readonly (readonly [name: string, usage: object, model?: string])[] = [
  ['a negative part', { prompt_tokens: 1151, completion_tokens: -35, total_tokens: 1116 }],
  ['the total alone', { total_tokens: 40 }],
  ['a part that is a text', { prompt_tokens: '9', completion_tokens: 4, total_tokens: 3 }],
  ['a zero beside a text', { prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 }],
  ['no total', { prompt_tokens: 9, completion_tokens: 4 }],
  ['a total below its parts', { prompt_tokens: 9, completion_tokens: 4, total_tokens: 5 }],
  [
    'reasoning that xAI counts beside the completion',
    {
      prompt_tokens: 9,
      completion_tokens: 4,
      total_tokens: 25,
      completion_tokens_details: { reasoning_tokens: 7 },
    },
    'grok/x',
  ],
];

describe('U3 the total is the sum of its parts', () => {
  const cases = COUNTS.flatMap(([name, usage, model = 'own/x']) =>
    ['chat', 'responses'].flatMap((protocol) =>
      [true, false].map((isStreamed) => ({ name, usage, model, protocol, isStreamed })),
    ),
  );
  test.each(cases)(
    '$name, in $protocol, streamed: $isStreamed',
    async ({ usage, model, protocol, isStreamed }) => {
      const [prompt, completion, total] = await totals(
        answerWith('Hello', usage),
        model,
        protocol,
        isStreamed,
      );
      expect(prompt).toBeGreaterThan(0);
      expect(completion).toBeGreaterThan(0);
      expect(total).toBe((prompt ?? 0) + (completion ?? 0));
    },
  );

  test('two reports, of which only the first has a total', async () => {
    const script = sse(
      ROLE,
      event({ content: 'Hello' }, null, {
        usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 },
      }),
      event({}, 'stop', { usage: { completion_tokens: 4 } }),
      DONE,
    );
    for (const protocol of ['chat', 'responses'])
      expect(await totals(script, 'own/x', protocol, true)).toEqual([9, 4, 13]);
  });
});

async function totals(script: Script, model: string, protocol: string, isStreamed: boolean) {
  const gateway = new RoutedGateway({ x: [script] }, { PROVIDERS });
  const openai = new OpenAI({
    apiKey: 'x',
    baseURL: 'http://weir/v1',
    maxRetries: 0,
    fetch: fetchOf(gateway),
  });
  if (protocol === 'responses') {
    const body = { model, input: 'Hello' };
    const { usage } = isStreamed
      ? await openai.responses.stream(body).finalResponse()
      : await openai.responses.create(body);
    return [usage?.input_tokens, usage?.output_tokens, usage?.total_tokens];
  }
  const messages = [{ role: 'user' as const, content: 'Hello' }];
  const { usage } = isStreamed
    ? await openai.chat.completions
        .stream({ model, messages, stream_options: { include_usage: true } })
        .finalChatCompletion()
    : await openai.chat.completions.create({ model, messages });
  return [usage?.prompt_tokens, usage?.completion_tokens, usage?.total_tokens];
}
