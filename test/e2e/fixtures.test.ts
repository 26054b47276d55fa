/** One fixture of each provider through the deployed gateway over HTTP. `test/gateway/fixtures.test.ts` runs all of them in process. */
import { beforeAll, expect, test } from 'vitest';
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../tools/simulator/server.ts';
import { cut } from '../contract/convert.ts';
import { expectFixture, fixtureRequest } from '../contract/fixture-request.ts';
import { type Fixture, fixtureProviders, fixtures } from '../contract/fixtures.ts';
import { type Gateway, sharedGateway } from './gateway.ts';

const PIECE_BYTES = 7;

let gateway: Gateway;

beforeAll(async () => {
  gateway = await sharedGateway(replay);
});

/** The client's request id is forwarded to the upstream (H2). It names the fixture. */
function replay({ headers }: RecordedRequest): Replay | undefined {
  const fixture = fixtures.find(({ name }) => name === headers['x-client-request-id']);
  return fixture && { chunks: [...cut(fixture.upstream, PIECE_BYTES)] };
}

/** The first stream of each provider that needs no settings and no generated id. */
const CASES = fixtureProviders.flatMap((id) => {
  const fixture = fixtures.find(
    (fixture) =>
      fixture.provider === id &&
      fixture.stream &&
      Object.keys(fixture.policies).length === 0 &&
      fixture.outcome.status === 'finished' &&
      !fixture.expected.includes('tool_calls') &&
      hasOwnId(fixture),
  );
  return fixture === undefined ? [] : [[fixture.name, fixture] as const];
});

/** Whether the client's id is the upstream's. */
function hasOwnId({ upstream, expected }: Fixture): boolean {
  const [, id = '?'] = /"id":"([^"]+)"/.exec(expected) ?? [];
  return new TextDecoder().decode(upstream).includes(id);
}

test('every provider has a fixture of a stream', () => {
  expect(CASES.map(([, { provider }]) => provider)).toEqual(fixtureProviders);
});

test.each(CASES)(
  'F1 C1 M2: %s over HTTP: the client gets the expected bytes, and KV the record',
  async (name, fixture) => {
    const { path, body } = fixtureRequest(fixture);
    const response = await gateway.post(path, body, { headers: { 'x-client-request-id': name } });
    const text = await response.text();
    const expected = withoutTimes(fixture.expected);
    const record = await gateway.record(response);
    expectFixture({ ...fixture, expected }, response, withoutTimes(text), Buffer.byteLength(text), record);
  },
);

/** Without the times of the stream, which are those of the request where the provider sends none. */
function withoutTimes(text: string): string {
  return text.replace(/"created":\d+/g, '"created":0');
}
