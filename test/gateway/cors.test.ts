/** Tests which headers of a response a page of an allowed origin may read. */
import { describe, expect, test } from 'vitest';
import { answerWith, RoutedGateway, refuse } from './upstreams.ts';

const ENV = {
  ANTHROPIC_API_KEY: 'key-of-anthropic',
  ANTHROPIC_BASE_URL: 'https://anthropic',
  CORS_ORIGINS: 'https://app.example.com',
};
const HEADERS = { origin: 'https://app.example.com', authorization: 'Bearer x' };
const LIMITS = { 'retry-after': '7', 'anthropic-ratelimit-requests-remaining': '0' };

describe('H1 a page may read every header', () => {
  test.each([
    ['an error of Weir', '/v1/chat/completions', 'nothing/a', ['x-request-id', 'x-weir-request-id']],
    ['a stream', '/v1/chat/completions', 'openai/a', ['x-weir-provider', 'x-weir-model', 'x-weir-dropped']],
    [
      "a provider's limit in passthrough",
      '/v1/messages',
      'anthropic/b',
      ['request-id', ...Object.keys(LIMITS)],
    ],
  ])('of %s', async (_, path, model, names) => {
    const gateway = new RoutedGateway(
      { a: [answerWith('Hi')], b: [refuse(429, {}, LIMITS)] },
      { ...ENV, RETRIES: '0' },
    );
    const response = await gateway.ask(
      { model, max_tokens: 9, stream: true, top_k: 5 },
      { headers: HEADERS },
      path,
    );
    await response.text();
    const exposed = response.headers.get('access-control-expose-headers')?.split(', ') ?? [];
    expect(exposed).toEqual(expect.arrayContaining(names));
    const others = [
      'access-control-allow-origin',
      'access-control-expose-headers',
      'cache-control',
      'content-type',
      'vary',
    ];
    expect([...exposed, ...others].sort()).toEqual(expect.arrayContaining([...response.headers.keys()]));
    expect(exposed.filter((name) => others.includes(name))).toEqual([]);
  });
});
