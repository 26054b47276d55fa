/** Alerts of budgets from ledger objects in workerd to a receiver over HTTP, with both ledgers (G10). */
import { describe, expect, test } from 'vitest';
import { ADMIN_TOKEN } from '../gateway.ts';
import { startLimited } from '../limits/limited.ts';
import { ALERT_SECRET, isSigned, startReceiver } from './alert-receiver.ts';

const MONTH_MS = 31 * 24 * 60 * 60_000;
describe.each(['kv', 'object'])('G10 LEDGER=%s', (LEDGER) => {
  test('the alarm of the object sends a signed alert when a request reaches a percentage, and only then', async () => {
    await using receiver = await startReceiver();
    const vars = { LEDGER, BUDGET_ALERTS: '50', ALERT_URL: receiver.url, ALERT_SECRET };
    await using limited = await startLimited({ vars });
    limited.usage = { prompt: 30, completion: 10 };
    const key = await limited.create({ budget: { tokens: 200, per: 'month', mode: 'warn' } });
    const next = receiver.next();
    for (let sent = 0; sent < 4; sent++) expect((await limited.ask(key)).status).toBe(200);
    const alert = await next;
    expect(alert.body).toMatchObject({
      ...{ event: 'budget_alert', key_id: key.id, percent: 50, unit: 'tokens', per: 'month' },
      limit: 200,
      name: 'test',
    });
    expect(alert.body.text).toMatch(
      /^Weir: the key test has reached 50 % of its budget of 200 tokens a month: /,
    );
    expect(alert.body.content).toBe(alert.body.text);
    expect(Number(alert.body.spent)).toBeGreaterThanOrEqual(100);
    expect(isSigned(alert)).toBe(true);
    await limited.gateway.logged((lines) => lines.some(({ event }) => event === 'budget_alert'));
    expect(receiver.arrived).toHaveLength(1);
  });

  test('an alert that is not taken is sent again by an object that restarted; a top-up sends none, the next month one', async () => {
    await using receiver = await startReceiver(500);
    const vars = { AUTH: 'keys', LEDGER, BUDGET_ALERTS: '50', ALERT_URL: receiver.url, ALERT_SECRET };
    await using limited = await startLimited({ entrypoint: './later-worker.ts', vars });
    const { gateway } = limited;
    const key = await limited.create({ budget: { tokens: 10_000, per: 'month' } });
    limited.usage = { prompt: 1000, completion: 1000 };
    /** Spends 6,000 tokens, and runs the alarm. */
    const spend = async () => {
      for (let sent = 0; sent < 3; sent++) expect((await limited.ask(key)).status).toBe(200);
      await limited.settled(key);
      await fire();
    };
    const fire = (afterMs = 0) =>
      gateway.fetch(`/test/later?ms=${afterMs}`).then(() => gateway.fetch(`/test/fire?name=${key.id}`));
    const texts = () => receiver.arrived.map(({ text: body }) => body);

    for (let sent = 0; sent < 3; sent++) expect((await limited.ask(key)).status).toBe(200);
    await gateway.logged((lines) => lines.some(({ event }) => event === 'budget_alert_failed'));
    await gateway.set(vars);
    await fire();
    expect(texts()).toHaveLength(1);
    await fire(61_000);
    await fire(10 * 61_000);
    const [first, ...again] = texts();
    expect(again).toEqual([first]);

    const add = { add: { tokens: 10_000 }, id: 'a' };
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const added = await gateway.post(`/v1/admin/keys/${key.id}/budget`, add, { headers });
    expect(added.status).toBe(200);
    await spend();
    expect(texts()).toHaveLength(2);

    await fire(MONTH_MS);
    await spend();
    expect(receiver.arrived).toHaveLength(3);
    const periods = receiver.arrived.map(({ body }) => body.period);
    expect(periods[2]).not.toBe(periods[0]);
  });
});
