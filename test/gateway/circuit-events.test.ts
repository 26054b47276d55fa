/** Log events of circuit breakers: one when a circuit opens, with what the provider said, and one when it closes. */
import { expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { answerWith, RoutedGateway, read, refuse, settle } from './upstreams.ts';

const ENV = {
  PROVIDERS: { acme: { base_url: 'https://acme/v1', api_key: 'ACME_KEY' } },
  ACME_KEY: 'key-of-acme',
  RETRIES: '0',
};
const BUSY = refuse(503, { message: "The cluster cannot serve 'Hello' now" });
const REFUSED = refuse(401, { message: 'Incorrect API key provided' });

async function askAll(gateway: RoutedGateway, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await read(await gateway.ask({ model: 'acme/m' }));
  await settle();
}

const events = (gateway: RoutedGateway) =>
  gateway.gateway.logged.filter(({ event }) => String(event).startsWith('circuit_')) as JsonObject[];

test('the fifth failure in a row opens the circuit: one event, with the sentence and without the prompt', async () => {
  const gateway = new RoutedGateway({ m: Array.from({ length: 7 }, () => BUSY) }, ENV);
  await askAll(gateway, 4);
  expect(events(gateway)).toEqual([]);
  await askAll(gateway, 3);
  expect(events(gateway)).toMatchObject([
    {
      ...{ event: 'circuit_opened', provider: 'acme', model: 'm', failures: 5, status: 503 },
      message: "The cluster cannot serve '…' now",
    },
  ]);
  expect(events(gateway)[0]?.request_id).toMatch(/^[0-9a-f-]{36}$/);
});

test('a refused key opens it at once for all callers, and the first success closes it', async () => {
  const gateway = new RoutedGateway({ m: [REFUSED, answerWith('Hi'), answerWith('Hi')] }, ENV);
  await askAll(gateway, 3);
  expect(events(gateway)).toMatchObject([
    { event: 'circuit_opened', key_id: null, failures: 1, message: 'Incorrect API key provided' },
    { event: 'circuit_closed', provider: 'acme', model: 'm' },
  ]);
});
