/** The request that a fixture answers, and what the gateway's response and record must be. */
import { expect } from 'vitest';
import type { Route } from '../../src/providers/provider.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import type { Fixture } from './fixtures.ts';

const PATHS: { readonly [R in Route]: string } = {
  chat: '/v1/chat/completions',
  completions: '/v1/completions',
  fim: '/v1/fim/completions',
  agents: '/v1/agents/completions',
  embeddings: '/v1/embeddings',
};

/** The path and the body of a client's request. */
export function fixtureRequest(fixture: Fixture): { readonly path: string; readonly body: JsonObject } {
  const { provider, route, model, stream, include_usage, n } = fixture;
  const hasMessages = route === 'chat' || route === 'agents';
  return {
    path: PATHS[route],
    body: {
      [route === 'agents' ? 'agent_id' : 'model']: `${provider}/${model}`,
      ...(hasMessages ? { messages: [{ role: 'user', content: 'Hello' }] } : { prompt: 'Hello there' }),
      ...(n === undefined ? {} : { n }),
      stream,
      ...(stream ? { stream_options: { include_usage } } : {}),
    },
  };
}

/** A stream with only an error. Before the response head, the error is a response with a status (H3). */
const ERROR_ALONE = /^data: (\{"error":.*\})\n\ndata: \[DONE\]\n\n$/;

/**
 * Asserts that a response has the fixture's bytes, and its record the fixture's outcome.
 *
 * @param text the response's body, in which generated ids and times are those of the fixture
 * @param bytes the size of the body that the client received
 */
export function expectFixture(
  fixture: Fixture,
  response: Response,
  text: string,
  bytes: number,
  record: object | undefined,
): void {
  const { expected, outcome } = fixture;
  const isStream = !ERROR_ALONE.test(expected);
  expect(text).toBe(expected.replace(ERROR_ALONE, '$1'));
  expect(response.headers.get('content-type')).toBe(
    fixture.stream && isStream ? 'text/event-stream; charset=utf-8' : 'application/json; charset=utf-8',
  );
  expect(record).toMatchObject({
    route: fixture.route,
    status: outcome.status,
    error_code: outcome.error?.code ?? null,
    finish_reason: outcome.native_finish_reason,
    vendor_events: outcome.vendor_events,
    vendor_tokens: outcome.vendor_tokens,
    ...(isStream ? { estimated: outcome.usage === null, bytes_out: bytes, ...outcome.usage } : {}),
  });
}
