/** Alerts of budgets from ledger objects in workerd to a receiver over HTTP, with both ledgers (G10). */
import { describe, expect, test } from 'vitest';
import { jsonOf } from '../client.ts';
import { ADMIN_TOKEN } from '../gateway.ts';
import { type Key, startLimited } from '../limits/limited.ts';
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

  test('a team is named once at each percentage of its budget that its keys reach together; its keys without a budget are not', async () => {
    await using receiver = await startReceiver();
    const vars = { LEDGER, BUDGET_ALERTS: '50,100', ALERT_URL: receiver.url, ALERT_SECRET };
    await using limited = await startLimited({ vars });
    limited.usage = { prompt: 1000, completion: 1000 };
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const made = await limited.gateway.post(
      '/v1/admin/teams',
      { name: 'search', budget: { tokens: 10_000, per: 'month' } },
      { headers },
    );
    const team = (await jsonOf(made)).id ?? null;
    const keys = [await limited.create({ team }), await limited.create({ team })];
    const alerts = [];
    for (const requests of [3, 2]) {
      const next = receiver.next();
      for (let sent = 0; sent < requests; sent++) {
        const response = await limited.ask(keys[sent % 2] as Key);
        expect([response.status, await response.text()]).toEqual([200, expect.anything()]);
      }
      alerts.push((await next).body);
    }
    expect(alerts).toMatchObject([
      { event: 'budget_alert', team, name: 'search', percent: 50, unit: 'tokens', per: 'month', spent: 6000 },
      { event: 'budget_alert', team, name: 'search', percent: 100, limit: 10_000, spent: 10_000 },
    ]);
    expect(alerts.every((alert) => !('key_id' in alert))).toBe(true);
    expect(alerts[0]?.text).toBe(
      `Weir: the team search has reached 50 % of its budget of 10000 tokens a month: 6000 tokens are spent in ${String(alerts[0]?.period)}`,
    );
    for (const key of keys) expect((await limited.ask(key)).headers.get('x-weir-limit')).toBe('team');
    await limited.gateway.logged(
      (lines) => lines.filter(({ event }) => event === 'budget_alert').length === 2,
    );
    expect(receiver.arrived).toHaveLength(2);
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
