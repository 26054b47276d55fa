/** Alerts of providers and the weekly summary, from workerd to a receiver over HTTP (G11, G12). */
import { expect, test } from 'vitest';
import { startLimited } from '../limits/limited.ts';
import { ALERT_SECRET, isSigned, startReceiver } from './alert-receiver.ts';

const DAY_MS = 24 * 60 * 60_000;

const refused = (status: number, message: string) => ({
  status,
  headers: { 'content-type': 'application/json' },
  chunks: [Buffer.from(JSON.stringify({ error: { message } }))],
});

test('G11 a failing provider, its open circuit and a refused key are sent once each, signed', async () => {
  await using receiver = await startReceiver();
  await using limited = await startLimited({
    vars: { RETRIES: '0', ALERT_URL: receiver.url, ALERT_SECRET },
    replay: ({ body }) =>
      body?.model === 'mistral-small-latest'
        ? refused(401, 'Unauthorized')
        : refused(503, 'The service is overloaded'),
  });
  const key = await limited.create({});
  // The circuits of both, the provider and the key.
  const four = Promise.all(Array.from({ length: 4 }, () => receiver.next()));
  for (let sent = 0; sent < 12; sent++) expect((await limited.ask(key)).status).toBe(503);
  const mistral = { model: 'mistral/mistral-small-latest' };
  for (let sent = 0; sent < 2; sent++) expect((await limited.ask(key, mistral)).status).toBe(502);
  const alerts = await four;
  const named = alerts.map(({ body }) => `${body.event} ${body.provider}`);
  expect(named.sort()).toEqual([
    'circuit_opened deepseek',
    'circuit_opened mistral',
    'credential_refused mistral',
    'provider_failing deepseek',
  ]);
  expect(alerts.every((alert) => isSigned(alert))).toBe(true);
  expect(alerts.every(({ body }) => body.text === body.content)).toBe(true);
  await limited.gateway.logged((lines) => lines.some(({ event }) => event === 'provider_failing'));
});

test('G12 the daily run of a Monday sends the week that its time ends once, other days nothing', async () => {
  await using receiver = await startReceiver();
  const vars = { LEDGER: 'object', ALERT_URL: receiver.url, ALERT_SECRET };
  await using limited = await startLimited({ entrypoint: './later-worker.ts', vars });
  limited.usage = { prompt: 1000, completion: 1000 };
  const key = await limited.create({ name: 'web app', budget: { USD: 5, per: 'month' } });
  for (let sent = 0; sent < 3; sent++) expect((await limited.ask(key)).status).toBe(200);
  await limited.settled(key);
  await limited.gateway.fetch(`/test/fire?name=${key.id}`);
  const day = Math.floor(Date.now() / DAY_MS);
  const monday = (day + 7 - ((day + 3) % 7)) * DAY_MS;
  const next = receiver.next();
  const run = (at: number) => limited.gateway.fetch(`/test/daily?at=${at}`);
  for (const at of [monday - DAY_MS, monday + 4 * 3_600_000, monday + 5 * 3_600_000, monday + DAY_MS])
    await run(at);
  const alert = await next;
  expect(alert.body).toMatchObject({
    event: 'weekly_summary',
    ...{
      to: new Date(monday - DAY_MS).toISOString().slice(0, 10),
      requests: 3,
      failed_requests: 0,
      total_tokens: 6000,
    },
    models: [{ model: 'deepseek/deepseek-flash', requests: 3 }],
    keys: [{ key_id: key.id, name: 'web app', requests: 3 }],
  });
  expect(alert.body.text).toMatch(/^Weir: the week .*: 3 requests, 6000 tokens, .*Keys: web app /);
  expect(isSigned(alert)).toBe(true);
  expect(receiver.arrived).toHaveLength(1);
});
