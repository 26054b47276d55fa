/** Runs every fixture through the gateway in one process, from the client's request to its bytes and its record. */
import { describe, expect, test } from 'vitest';
import { COMPATIBLE, cut } from '../contract/convert.ts';
import { expectFixture, fixtureRequest } from '../contract/fixture-request.ts';
import { type Fixture, fixtures } from '../contract/fixtures.ts';
import { FakeClock } from '../stream/fake-clock.ts';
import { LimitedGateway } from './limited-gateway.ts';
import './upstreams.ts';

const PIECE_BYTES = 7;
const KEYS = [
  ...['ANTHROPIC', 'CEREBRAS', 'CODESTRAL', 'DEEPSEEK', 'FIREWORKS', 'GEMINI', 'GROQ', 'MISTRAL', 'MOONSHOT'],
  ...['OPENAI', 'OPENROUTER', 'OPENTOKEN', 'TOGETHER', 'XAI', 'XEROTIER', 'ZAI'],
];
const ENV = {
  AUTH: 'open',
  RETRIES: '0',
  ...Object.fromEntries(KEYS.map((name) => [`${name}_API_KEY`, 'k'])),
  OPENTOKEN_BASE_URL: 'https://opentoken.example/v1',
  XEROTIER_BASE_URL: 'https://xerotier.example/v1',
  AWS_BEARER_TOKEN_BEDROCK: 'k',
  AWS_REGION: 'us-east-1',
  AZURE_API_KEY: 'k',
  AZURE_RESOURCE: 'weir',
  CLOUDFLARE_AI_TOKEN: 'k',
  VERTEX_API_KEY: 'k',
  CLOUDFLARE_ACCOUNT_ID: '0123456789abcdef'.repeat(2),
  PROVIDERS: JSON.stringify({ [COMPATIBLE]: { base_url: 'https://compatible.example/v1' } }),
};

/** The upstream's response in these pieces. */
function upstreamResponse({ upstream, upstreamIsStream }: Fixture, pieces: Iterable<Uint8Array>): Response {
  const left = [...pieces].map((piece) => new Uint8Array(piece));
  const body = new ReadableStream({
    type: 'bytes',
    pull(controller) {
      const piece = left.shift();
      if (piece !== undefined) return controller.enqueue(piece);
      controller.close();
      controller.byobRequest?.respond(0);
    },
  });
  const type = upstreamIsStream ? 'text/event-stream' : 'application/json';
  return new Response(upstream.length === 0 ? null : body, { headers: { 'content-type': type } });
}

describe.each(fixtures.map((fixture) => [fixture.name, fixture] as const))('%s', (_, fixture) => {
  test.each(['whole', 'pieces'])('F1 C1 M2: the upstream sends it in %s', async (cutting) => {
    const { upstream } = fixture;
    // The first random text is that of the request's own id.
    let made = 0;
    const gateway = new LimitedGateway(
      { ...ENV, ...fixture.policies },
      {
        fetch: async () =>
          upstreamResponse(fixture, cutting === 'whole' ? [upstream] : cut(upstream, PIECE_BYTES)),
        clock: new FakeClock(),
        random: () => String(made++).padStart(4, '0'),
      },
    );
    const { path, body } = fixtureRequest(fixture);
    const response = await gateway.post(path, '', body);
    const text = await response.text();
    // A refused request has no record, for which this would wait.
    expect(gateway.logged.filter(({ event }) => event === 'request_refused')).toEqual([]);
    await gateway.idle();
    const records = gateway.logged.filter(({ event }) => event === 'request');
    expect(records).toHaveLength(1);
    expectFixture(fixture, response, text, Buffer.byteLength(text), records[0]);
  });
});
