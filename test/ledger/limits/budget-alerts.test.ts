/** Alerts of budgets: what is noted once, and what is sent until a receiver takes it (G10). */
import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { AlertSettings } from '../../../src/ledger/alerts/send-alert.ts';
import { BudgetAlerts } from '../../../src/ledger/limits/budget-alerts.ts';
import { storedLimits } from '../../../src/ledger/limits/limit-tables.ts';
import { settleUnreserved } from '../../../src/ledger/limits/reservations.ts';
import { addToBudget } from '../../../src/ledger/limits/top-ups.ts';
import { readAlertSettings } from '../../../src/ledger/settings.ts';
import { SettingsReader } from '../../../src/settings/reader.ts';
import type { JsonObject } from '../../../src/shared/json.ts';
import { MemorySql, MINUTE, NOW, used } from './memory-sql.ts';

const DAY = 24 * 60 * MINUTE;
const SECRET = 'a-secret-of-the-tests';
const TARGET = { url: 'https://alerts.example/weir', secret: SECRET };
const MONTHLY = { budget: { USD: 10, per: 'month', mode: 'hard' } };

Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

function signatureAt(ms: number, text: string): string {
  const seconds = Math.floor(ms / 1000);
  return `t=${seconds},sha256=${createHmac('sha256', SECRET).update(`${seconds}.${text}`).digest('hex')}`;
}

interface Sent {
  readonly url: string;
  readonly body: JsonObject;
  readonly signature: string | null;
  readonly text: string;
}

/** A key's object with a receiver that responds with these statuses, one after the other, and then with 200. */
class Alerted {
  readonly sql: MemorySql;
  readonly logged: JsonObject[] = [];
  readonly sent: Sent[] = [];
  readonly statuses: (number | Error)[] = [];
  areUnreadable = false;
  name: string | null | Error = 'web <!channel> app';
  now = NOW;
  alerts: BudgetAlerts;
  #settings: AlertSettings;

  set settings(changed: Partial<AlertSettings>) {
    this.#settings = { ...this.#settings, ...changed };
  }
  #charges = 0;

  constructor(limits: Parameters<MemorySql['limit']>[0], settings: Partial<AlertSettings> = {}) {
    this.#settings = { percents: [50, 80, 100], target: TARGET, ...settings };
    this.sql = new MemorySql(limits);
    this.alerts = this.open();
  }

  /** The object after a restart. */
  open(): BudgetAlerts {
    return new BudgetAlerts({
      keyId: 'key-1',
      keyName: async () => {
        if (this.name instanceof Error) throw this.name;
        return this.name;
      },
      sql: this.sql,
      transaction: (act) => act(),
      settings: async () => {
        if (this.areUnreadable) throw new Error('no settings');
        return this.#settings;
      },
      fetch: async (url, init) => {
        const text = String(init?.body);
        const signature = new Headers(init?.headers).get('x-weir-signature');
        this.sent.push({ url: String(url), body: JSON.parse(text), signature, text });
        const status = this.statuses.shift() ?? 200;
        if (status instanceof Error) throw status;
        return new Response(null, { status });
      },
      log: (entry) => this.logged.push({ ...entry }),
    });
  }

  /** Charges an amount, and does what the object then does. @returns when the alarm is needed next */
  async spend(usd: number, tokens = 1): Promise<number | null> {
    const day = new Date(this.now).toISOString().slice(0, 10);
    settleUnreserved(this.sql, `r${++this.#charges}`, used(tokens, usd * 1e9), day, this.now);
    const isDue = await this.alerts.note(this.now);
    expect(isDue).toBe((this.alerts.nextDue ?? Number.POSITIVE_INFINITY) <= this.now);
    return this.alerts.send(this.now);
  }

  get percents(): unknown[] {
    return this.sent.map(({ body }) => body.percent);
  }
}

describe('G10 an alert', () => {
  test('is sent once for each percentage that a period reaches, with amounts, the name of the key, and a sentence for Slack and Discord', async () => {
    const alerted = new Alerted(MONTHLY);
    for (const usd of [4.99, 0.01, 1, 2, 1.9, 0.1, 5]) await alerted.spend(usd);
    expect(alerted.percents).toEqual([50, 80, 100]);
    // Neither a mention of Slack's nor one of Discord's.
    const text =
      'Weir: the key web  !channel  app has reached 50 % of its budget of 10.00 USD a month: 5.00 USD are spent in 2026-11';
    expect(alerted.sent[0]?.body).toEqual({
      event: 'budget_alert',
      id: 'key-1/USD/2026-11/50',
      key_id: 'key-1',
      time: new Date(NOW).toISOString(),
      percent: 50,
      unit: 'USD',
      per: 'month',
      period: '2026-11',
      spent: 5,
      limit: 10,
      name: 'web <!channel> app',
      text,
      content: text,
      allowed_mentions: { parse: [] },
    });
    // The log has ids alone.
    const words = ['name', 'text', 'content', 'allowed_mentions'];
    expect(alerted.logged).toEqual(
      alerted.sent.map(({ body }) =>
        Object.fromEntries(Object.entries(body).filter(([field]) => !words.includes(field))),
      ),
    );
  });

  test.each([
    ['has no name', null],
    ['cannot be read', new Error('no KV')],
  ])('of a key whose name %s: its id stands in the sentence', async (_, name) => {
    const alerted = new Alerted({ budget: { tokens: 10, per: 'total', mode: 'warn' } });
    alerted.name = name;
    await alerted.spend(0, 10);
    const text =
      'Weir: the key key-1 has reached 100 % of its budget of 10 tokens in total: 10 tokens are spent';
    expect(alerted.sent[0]?.body).toMatchObject({ name: null, text, content: text });
  });

  test('of several percentages at once is sent for the highest, and later for none below it', async () => {
    const alerted = new Alerted(MONTHLY);
    await alerted.spend(8.5);
    await alerted.spend(0.1);
    expect(alerted.percents).toEqual([80]);
  });

  test('is signed with HMAC-SHA-256 over the time of its sending and its body', async () => {
    const alerted = new Alerted(MONTHLY);
    await alerted.spend(10);
    const [{ text = '', signature, url } = {}] = alerted.sent;
    expect(url).toBe(TARGET.url);
    expect(signature).toBe(signatureAt(NOW, text));
  });

  test('that is sent again has the same body and id, and is signed with the time of that try', async () => {
    const alerted = new Alerted(MONTHLY);
    alerted.statuses.push(500, 500);
    let due = await alerted.spend(10);
    const times = [alerted.now];
    while (due !== null) {
      alerted.now = due;
      times.push(due);
      due = await alerted.alerts.send(due);
    }
    const [first] = alerted.sent;
    expect(times).toHaveLength(3);
    expect(alerted.sent.map(({ text }) => text)).toEqual(times.map(() => first?.text));
    expect(alerted.sent.map(({ signature }) => signature)).toEqual(
      times.map((ms) => signatureAt(ms, first?.text ?? '')),
    );
    expect(new Set(alerted.sent.map(({ signature }) => signature)).size).toBe(3);
  });

  test('is sent anew in the next period', async () => {
    const alerted = new Alerted(MONTHLY);
    await alerted.spend(6);
    alerted.now = Date.UTC(2026, 11, 1);
    await alerted.spend(1);
    expect(alerted.percents).toEqual([50]);
    await alerted.spend(4);
    expect(alerted.sent.map(({ body }) => body.period)).toEqual(['2026-11', '2026-12']);
  });

  test('names the week of a weekly budget, and is sent anew on Monday', async () => {
    const alerted = new Alerted({ budget: { USD: 10, per: 'week', mode: 'hard' } });
    alerted.now = Date.UTC(2026, 10, 29, 23);
    await alerted.spend(6);
    alerted.now = Date.UTC(2026, 10, 30);
    await alerted.spend(6);
    expect(alerted.sent.map(({ body }) => [body.per, body.period, body.spent])).toEqual([
      ['week', '2026-W48', 6],
      ['week', '2026-W49', 6],
    ]);
  });

  test('counts a top-up to the limit, and is not sent again where one moves the spend below a percentage', async () => {
    const alerted = new Alerted(MONTHLY);
    await alerted.spend(5);
    const added = { id: 'a', actor: 'admin token', note: '', unit: 'USD', per: null, amount: 10e9 };
    expect(addToBudget(alerted.sql, storedLimits(alerted.sql), added, NOW)).toMatchObject({ kind: 'added' });
    await alerted.spend(6);
    expect(alerted.percents).toEqual([50]);
    await alerted.spend(5);
    expect(alerted.sent.at(-1)?.body).toMatchObject({ percent: 80, spent: 16, limit: 20 });
  });

  test('is separate for each budget of a key, in money and in tokens, also where a budget only warns', async () => {
    const mode = 'warn';
    const budget = [
      { USD: 2, per: 'day', mode },
      { USD: 100, per: 'month', mode },
      { tokens: 10, per: 'total', mode },
    ];
    const alerted = new Alerted({ budget });
    await alerted.spend(1, 9);
    // Both are sent at once; which is signed first differs.
    const sent = alerted.sent.map(({ body }) => [body.id, body.spent, body.limit]);
    expect(sent.sort()).toEqual([
      ['key-1/USD/2026-11-21/50', 1, 2],
      ['key-1/tokens/total/80', 9, 10],
    ]);
  });

  test('is only logged without a URL, and there is none where alerts are off or a budget is 0', async () => {
    const logged = new Alerted(MONTHLY, { target: null });
    expect(await logged.spend(5)).toBeNull();
    expect([logged.sent.length, logged.logged.length]).toEqual([0, 1]);
    const off = new Alerted(MONTHLY, { percents: [] });
    await off.spend(10);
    const zero = new Alerted({ budget: { USD: 0 } });
    await zero.spend(10);
    expect([...off.logged, ...zero.logged]).toEqual([]);
  });
});

describe('G10 an alert that is not taken', () => {
  test('is sent again with growing waits, also by an object that restarted, with the same id', async () => {
    const alerted = new Alerted(MONTHLY);
    alerted.statuses.push(500, new TypeError('no connection'), 302);
    const waits: number[] = [];
    let next = await alerted.spend(5);
    while (next !== null && waits.length < 10) {
      waits.push(next - alerted.now);
      expect(await alerted.alerts.send(next - 1)).toBe(next);
      alerted.alerts = alerted.open();
      alerted.now = next;
      next = await alerted.alerts.send(next);
    }
    expect(waits).toEqual([MINUTE, 2 * MINUTE, 4 * MINUTE]);
    expect(new Set(alerted.sent.map(({ text }) => text)).size).toBe(1);
    expect(alerted.logged.slice(1).map(({ event, reason }) => [event, reason])).toEqual([
      ['budget_alert_failed', 'The receiver responded with status 500'],
      ['budget_alert_failed', 'TypeError'],
      ['budget_alert_failed', 'The receiver responded with status 302'],
    ]);
  });

  test('is neither noted nor lost while the settings cannot be read, and what was spent counts', async () => {
    const alerted = new Alerted(MONTHLY);
    alerted.areUnreadable = true;
    expect(await alerted.spend(5)).toBeNull();
    expect(alerted.logged).toMatchObject([{ event: 'budget_alert_failed', reason: 'Error: no settings' }]);
    alerted.areUnreadable = false;
    await alerted.spend(1);
    expect(alerted.sent).toMatchObject([{ body: { percent: 50, spent: 6 } }]);
  });

  test.each(['ALERT_URL', 'ALERT_SECRET'])(
    'W5 waits while %s cannot be read, and is sent soon after',
    async (name) => {
      const alerted = new Alerted(MONTHLY);
      alerted.settings = { target: { unreadable: name } };
      let due = await alerted.spend(6);
      for (let wait = 0; wait < 20; wait++) {
        expect(due).toBe(alerted.now + 15_000);
        alerted.now = due ?? 0;
        due = await alerted.alerts.send(alerted.now);
      }
      expect(alerted.sent).toEqual([]);
      alerted.settings = { target: TARGET };
      alerted.now = due ?? 0;
      expect(await alerted.alerts.send(alerted.now)).toBe(null);
      expect(alerted.percents).toEqual([50]);
    },
  );

  test('is dropped after a day, with a line in the log', async () => {
    const alerted = new Alerted(MONTHLY);
    alerted.statuses.push(...Array.from({ length: 100 }, () => 503));
    for (let next = await alerted.spend(5); next !== null; next = await alerted.alerts.send(next))
      alerted.now = next;
    expect(alerted.now).toBeLessThanOrEqual(NOW + DAY);
    expect(alerted.now).toBeGreaterThan(NOW + DAY - 2 * 60 * MINUTE);
    expect(alerted.logged.at(-1)).toMatchObject({ event: 'budget_alert_lost', id: 'key-1/USD/2026-11/50' });
    expect(JSON.stringify(alerted.logged)).not.toContain('alerts.example');
  });
});

describe('G10 settings of alerts', () => {
  function read(env: JsonObject) {
    const reader = new SettingsReader(env);
    return { alerts: readAlertSettings(reader), problems: reader.problems.map(({ setting }) => setting) };
  }

  test('50, 80 and 100 percent without a URL by default; off turns alerts off', () => {
    expect(read({})).toEqual({ alerts: { percents: [50, 80, 100], target: null }, problems: [] });
    expect(read({ BUDGET_ALERTS: 'off' }).alerts.percents).toEqual([]);
    expect(read({ BUDGET_ALERTS: '90, 25' }).alerts.percents).toEqual([25, 90]);
  });

  test.each(['0', '101', '1.5', 'half', '50,', '1,2,3,4,5,6,7,8,9,10,11'])('refuses %j percent', (value) => {
    expect(read({ BUDGET_ALERTS: value }).problems).toEqual(['BUDGET_ALERTS']);
  });

  test('a URL needs https, or the host itself, and a secret', () => {
    const ALERT_SECRET = SECRET;
    for (const ALERT_URL of ['https://a.example/x', 'http://localhost:9/x', 'http://127.0.0.1:9'])
      expect(read({ ALERT_URL, ALERT_SECRET })).toMatchObject({
        alerts: { target: { url: ALERT_URL, secret: SECRET } },
        problems: [],
      });
    for (const ALERT_URL of ['http://a.example', 'ftp://a.example', 'alerts'])
      expect(read({ ALERT_URL, ALERT_SECRET })).toMatchObject({
        alerts: { target: null },
        problems: ['ALERT_URL'],
      });
    for (const secret of [undefined, '', 'short'])
      expect(read({ ALERT_URL: 'https://a.example', ALERT_SECRET: secret })).toMatchObject({
        alerts: { target: null },
        problems: ['ALERT_SECRET'],
      });
  });

  test.each([
    'https://a.example:8443/T0K3N?T0K3N#T0K3N',
    'https://T0K3N:T0K3N@a.example:8443',
    ' https://a.example:8443/T0K3N/T0K3N ',
  ])('of the URL, which may contain a secret, the host alone is shown: %s', (ALERT_URL) => {
    const reader = new SettingsReader({ ALERT_URL, ALERT_SECRET: SECRET });
    readAlertSettings(reader);
    const shown = reader.inForce({ ALERT_URL });
    expect(shown).toContainEqual({ setting: 'ALERT_URL', value: 'a.example:8443', source: 'environment' });
    expect(JSON.stringify(shown)).not.toMatch(/T0K3N|secret-of/);
  });
});
