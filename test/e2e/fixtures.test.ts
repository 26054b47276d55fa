/** Runs every fixture through the deployed gateway over HTTP, and compares the client's bytes and the record in KV. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Route } from '../../src/providers/provider.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import type { RecordedRequest, Replay } from '../../tools/simulator/server.ts';
import { cut } from '../contract/convert.ts';
import { type Fixture, fixtures } from '../contract/fixtures.ts';
import { MESSAGES } from './client.ts';
import { type Gateway, startGateway } from './gateway.ts';

const PIECE_BYTES = 7;

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ replay });
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** The client's request id is forwarded to the upstream (H2). It names the fixture and how it is split. */
function replay({ headers }: RecordedRequest): Replay | undefined {
  const [name, cutting] = String(headers['x-client-request-id']).split(' ');
  const fixture = fixtures.find((candidate) => candidate.name === name);
  if (fixture === undefined) return undefined;
  const { upstream, upstreamIsStream } = fixture;
  const chunks = cutting === 'whole' ? [upstream] : [...cut(upstream, PIECE_BYTES)];
  return upstreamIsStream ? { chunks } : { chunks, headers: { 'content-type': 'application/json' } };
}

const PATHS: { readonly [R in Route]: string } = {
  chat: '/v1/chat/completions',
  completions: '/v1/completions',
  fim: '/v1/fim/completions',
  agents: '/v1/agents/completions',
  embeddings: '/v1/embeddings',
};

function bodyOf({ provider, route, model, stream, include_usage, n }: Fixture): JsonObject {
  const address = { [route === 'agents' ? 'agent_id' : 'model']: `${provider}/${model}` };
  const asked = route === 'chat' || route === 'agents' ? { messages: MESSAGES } : { prompt: 'Hello there' };
  const choices = n === undefined ? {} : { n };
  return {
    ...address,
    ...asked,
    ...choices,
    stream,
    ...(stream ? { stream_options: { include_usage } } : {}),
  };
}

/** Fixtures that need the same settings share one reload of the Worker. */
const groups = new Map<string, Fixture[]>();
for (const fixture of fixtures) {
  const settings = JSON.stringify(fixture.policies);
  groups.set(settings, [...(groups.get(settings) ?? []), fixture]);
}

describe.each([...groups])('with the settings %s', (settings, ofSettings) => {
  beforeAll(async () => {
    if (settings !== '{}') await gateway.set(JSON.parse(settings));
  });

  const cases = ofSettings.flatMap((fixture) =>
    ['whole', 'pieces'].map((cutting) => [fixture.name, cutting, fixture] as const),
  );
  test.each(cases)('F1 C1 M2: %s, sent in %s', async (name, cutting, fixture) => {
    const asked = Date.now();
    const headers = { 'x-client-request-id': `${name} ${cutting}` };
    const response = await gateway.post(PATHS[fixture.route], bodyOf(fixture), { headers });
    const text = await response.text();
    const upstream = new TextDecoder().decode(fixture.upstream);
    const isStream = !ERROR_ALONE.test(fixture.expected);
    const expected = withoutMadeCallIds(fixture.expected.replace(ERROR_ALONE, '$1'), upstream);
    expect(withNumbers(withoutMadeCallIds(text, upstream), expected, asked)).toBe(expected);
    expect(response.headers.get('content-type')).toBe(
      fixture.stream && isStream ? 'text/event-stream; charset=utf-8' : 'application/json; charset=utf-8',
    );
    const record = await gateway.record(response);
    const { outcome } = fixture;
    expect(record).toMatchObject({
      route: fixture.route,
      status: outcome.status,
      error_code: outcome.error?.code ?? null,
      finish_reason: outcome.native_finish_reason,
      vendor_events: outcome.vendor_events,
      vendor_tokens: outcome.vendor_tokens,
      ...(isStream
        ? { estimated: outcome.usage === null, bytes_out: Buffer.byteLength(text), ...outcome.usage }
        : {}),
    });
  });
});

/** A stream with only an error. Before the response head, the error is a response with a status (H3). */
const ERROR_ALONE = /^data: (\{"error":.*\})\n\ndata: \[DONE\]\n\n$/;

/** The current time in fixtures, in seconds. */
const FIXTURE_NOW = 1_800_000_000;
const UUID = /(?<=(?:chatcmpl|cmpl)-)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Replaces generated values as in the fixtures: ids are numbered in order, and the request's time becomes the fixtures' time. */
function withNumbers(text: string, expected: string, asked: number): string {
  const numbers = new Map<string, string>();
  const numbered = text.replace(UUID, (made) => {
    const number = numbers.get(made) ?? String(numbers.size + 1).padStart(4, '0');
    numbers.set(made, number);
    return number;
  });
  if (!expected.includes(`"created":${FIXTURE_NOW},`)) return numbered;
  const isNow = (second: number) => second >= Math.floor(asked / 1000) && second * 1000 <= Date.now();
  return numbered.replace(/"created":(\d+),/g, (match, second) =>
    isNow(Number(second)) ? `"created":${FIXTURE_NOW},` : match,
  );
}

/** Replaces tool call ids of nine letters and digits that the upstream did not send: Weir generated them (C7). */
function withoutMadeCallIds(text: string, upstream: string): string {
  return text.replace(/(?<="id":")[A-Za-z0-9]{9}(?=","type":"function")/g, (id) =>
    upstream.includes(id) ? id : 'made-call-id',
  );
}
