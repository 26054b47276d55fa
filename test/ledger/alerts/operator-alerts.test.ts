/** The object of alerts: failures of providers over all isolates, and one alert for each subject (G11). */
import { describe, expect, test } from 'vitest';
import {
  type OperatorAlert,
  OperatorAlerts,
  type ProviderCounts,
} from '../../../src/ledger/alerts/operator-alerts.ts';
import type { AlertSettings } from '../../../src/ledger/alerts/send-alert.ts';
import type { JsonObject } from '../../../src/shared/json.ts';
import { MemorySql, MINUTE, NOW } from '../limits/memory-sql.ts';

Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

const TARGET = { url: 'https://alerts.example/weir', secret: 'a-secret-of-the-tests' };
const HOUR = 60 * MINUTE;
const LAST = {
  provider: 'openai',
  model: 'gpt-5.5',
  status: 503,
  error_code: 'upstream_overloaded',
  message: null,
};
const SLOT_MS = 5000;

/** The object with a receiver that responds with these statuses, and then with 200. */
class Operator {
  readonly sql = new MemorySql();
  readonly logged: JsonObject[] = [];
  readonly sent: JsonObject[] = [];
  readonly statuses: number[] = [];
  target: AlertSettings['target'] = TARGET;
  wakes = 0;
  #now = NOW;
  readonly alerts = new OperatorAlerts({
    sql: this.sql,
    now: () => this.#now,
    settings: async () => ({ percents: [], target: this.target }),
    wake: async () => void this.wakes++,
    fetch: async (_, init) => {
      this.sent.push(JSON.parse(String(init?.body)));
      return new Response(null, { status: this.statuses.shift() ?? 200 });
    },
    log: (entry) => this.logged.push({ ...entry }),
  });

  /** Tells of calls at a time; `all` are those of the isolate before, which each message repeats. */
  see(
    isolate: string,
    slots: ProviderCounts['slots'],
    now = NOW,
    provider = 'openai',
  ): Promise<number | null> {
    this.#now = now;
    return this.alerts.takeCalls({ isolate, provider, slots, last: LAST });
  }

  note(fields: Partial<OperatorAlert> = {}, now = NOW): Promise<number> {
    const alert: OperatorAlert = {
      event: 'credential_refused',
      subject: 'openai',
      silentMs: HOUR,
      fields: { provider: 'openai' },
      text: 'openai refuses the key',
    };
    this.#now = now;
    return this.alerts.noteAlert({ ...alert, ...fields });
  }

  get events(): unknown[] {
    return this.logged.map(({ event }) => event);
  }
}

const at = (ms: number) => Math.floor(ms / SLOT_MS);

describe('G11 a provider', () => {
  test('is failing at 10 failures of two isolates within 5 minutes, more than half of the calls; the alert says so in words', async () => {
    const operator = new Operator();
    expect(await operator.see('a', [[at(NOW - 4 * MINUTE), 6, 6]], NOW - 4 * MINUTE)).toBeNull();
    expect(await operator.see('b', [[at(NOW), 13, 3]])).toBeNull();
    expect(await operator.see('b', [[at(NOW), 13, 4]])).toBe(NOW + HOUR);
    expect(operator.wakes).toBe(1);
    await operator.alerts.send(NOW);
    const text =
      'Weir: openai is failing: 10 of its last 19 requests within 5 minutes, the last with 503 upstream_overloaded (openai/gpt-5.5)';
    expect(operator.sent).toEqual([
      {
        event: 'provider_failing',
        id: `provider_failing/openai/${new Date(NOW).toISOString()}`,
        time: new Date(NOW).toISOString(),
        ...{ provider: 'openai', requests: 19, failed_requests: 10, minutes: 5, last: LAST },
        ...{ text, content: text, allowed_mentions: { parse: [] } },
      },
    ]);
    expect(operator.events).toEqual(['provider_failing']);
  });

  test.each<[string, ...(readonly [isolate: string, agoMs: number, calls: number, failures: number])[]]>([
    ['9 failures', ['a', 0, 9, 9]],
    ['10 failures of 20 calls', ['b', 0, 10, 0], ['a', 0, 10, 10]],
    ['failures of which some are older than 5 minutes', ['a', 6 * MINUTE, 5, 5], ['b', 0, 9, 9]],
    ['a message that is repeated', ['a', 0, 6, 6], ['a', 0, 6, 6]],
  ])('is not failing with %s', async (_, ...messages) => {
    const operator = new Operator();
    for (const [isolate, agoMs, calls, failures] of messages)
      expect(await operator.see(isolate, [[at(NOW - agoMs), calls, failures]], NOW - agoMs)).toBeNull();
    expect(operator.events).toEqual([]);
  });

  test('that goes on failing has one alert an hour, and another provider its own', async () => {
    const operator = new Operator();
    for (let minute = 0; minute < 130; minute++) {
      const now = NOW + minute * MINUTE;
      await operator.see('a', [[at(now), 12, 12]], now);
      await operator.see('a', [[at(now), 12, 12]], now, 'mistral');
    }
    const subjects = operator.logged.map(({ provider, time }) => [provider, time]);
    const times = [0, 60, 120].map((minute) => new Date(NOW + minute * MINUTE).toISOString());
    expect(subjects).toEqual(
      times.flatMap((time) => [
        ['openai', time],
        ['mistral', time],
      ]),
    );
  });

  test('of more isolates than are counted keeps no further rows', async () => {
    const operator = new Operator();
    for (let isolate = 0; isolate < 1005; isolate++) await operator.see(`i${isolate}`, [[at(NOW), 1, 0]]);
    expect(operator.sql.count('provider_calls')).toBe(1000);
    await operator.see('late', [[at(NOW + 6 * MINUTE), 1, 0]], NOW + 6 * MINUTE);
    expect(operator.sql.count('provider_calls')).toBe(1);
  });
});

describe('G11 an alert of a provider', () => {
  test('is sent once within an hour for its subject, also if two isolates report it at once', async () => {
    const operator = new Operator();
    expect(await Promise.all([operator.note(), operator.note()])).toEqual([NOW + HOUR, NOW + HOUR]);
    expect(await operator.note({}, NOW + HOUR - 1)).toBe(NOW + HOUR);
    await operator.note({ subject: 'mistral' });
    await operator.note({}, NOW + HOUR);
    await operator.alerts.send(NOW + HOUR);
    expect(operator.sent.map(({ id }) => id)).toHaveLength(3);
  });

  test('is only logged without a URL; an open circuit was logged before', async () => {
    const operator = new Operator();
    operator.target = null;
    await operator.note();
    await operator.note({ event: 'circuit_opened' });
    expect(operator.events).toEqual(['credential_refused']);
    expect([operator.wakes, operator.alerts.nextDue]).toEqual([0, null]);
  });

  test('beyond 20 of an event within an hour is not sent, which the log says', async () => {
    const operator = new Operator();
    for (let model = 0; model < 25; model++)
      await operator.note({ event: 'circuit_opened', subject: `openai/made-up-${model}` });
    let due: number | null = NOW;
    while (due !== null) due = await operator.alerts.send(NOW);
    expect(operator.sent).toHaveLength(20);
    expect(operator.events).toEqual(Array.from({ length: 5 }, () => 'alert_lost'));
  });

  test('that is not taken is sent again for a day, with the same body', async () => {
    const operator = new Operator();
    operator.statuses.push(...Array.from({ length: 100 }, () => 500));
    await operator.note();
    let due = await operator.alerts.send(NOW);
    expect(due).toBe(NOW + MINUTE);
    while (due !== null) due = await operator.alerts.send(due);
    expect(new Set(operator.sent.map((body) => JSON.stringify(body))).size).toBe(1);
    const failures = operator.events.slice(1);
    expect([failures.at(0), failures.at(-1)]).toEqual(['alert_failed', 'alert_lost']);
    expect(operator.sent.length).toBe(failures.length);
    expect(operator.sent.length).toBeGreaterThan(20);
  });

  test('mentions nobody in Slack, and has no more words than Discord takes', async () => {
    const operator = new Operator();
    await operator.note({ text: `<!channel> ${'x'.repeat(3000)}` });
    await operator.alerts.send(NOW);
    const [{ text, content } = {}] = operator.sent;
    expect(String(text)).toMatch(/^Weir: {2}!channel {2}x+$/);
    expect(String(text)).toHaveLength(2000);
    expect(content).toBe(text);
  });
});
