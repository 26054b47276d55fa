/** What the gateway reports of its providers to the object of alerts (G11). */
import { expect, test } from 'vitest';
import {
  type OperatorAlert,
  OperatorAlerts,
  type ProviderCounts,
} from '../../src/ledger/alerts/operator-alerts.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { MemorySql } from '../ledger/limits/memory-sql.ts';
import { answerWith, RoutedGateway, read, refuse, type Script, settle } from './upstreams.ts';

const BUSY = refuse(503, { message: "The cluster cannot serve 'Hello' now" });
const REFUSED = refuse(401, { message: 'Incorrect API key provided' });
const MISSING = refuse(404, { code: 'model_not_found', message: 'The model does not exist' });
const GOOD = answerWith('Hi');

/** A gateway whose object of alerts is the real one, in memory. */
class Watched {
  readonly alerts: Readonly<Record<string, unknown>>[] = [];
  readonly reports: ProviderCounts[] = [];
  isBroken = false;
  readonly gateway: RoutedGateway;
  readonly #object = new OperatorAlerts({
    sql: new MemorySql(),
    now: () => this.gateway.clock.now(),
    settings: async () => ({ percents: [], target: null }),
    wake: async () => {},
    fetch: async () => new Response(),
    log: (entry) => this.alerts.push({ ...entry }),
  });

  constructor(behaviors: Readonly<Record<string, Script[]>>, env: JsonObject = {}) {
    const object = {
      takeCalls: async (counts: ProviderCounts) => {
        this.reports.push(counts);
        if (this.isBroken) throw new Error('Network connection lost');
        return this.#object.takeCalls(counts);
      },
      noteAlert: async (alert: OperatorAlert) => {
        if (alert.event === 'circuit_opened')
          this.alerts.push({ event: alert.event, ...alert.fields, text: alert.text });
        return this.#object.noteAlert(alert);
      },
    };
    this.gateway = new RoutedGateway(behaviors, {
      PROVIDERS: { acme: { base_url: 'https://acme/v1', api_key: 'ACME_KEY' } },
      ...{ ACME_KEY: 'key-of-acme', RETRIES: '0', ...env },
      // No JSON.
      WEIR_LEDGER: { getByName: () => object } as never,
    });
  }

  async ask(count: number, model = 'acme/m'): Promise<void> {
    for (let n = 0; n < count; n++) await read(await this.gateway.ask({ model }));
    await settle();
  }

  named(event: string) {
    return this.alerts.filter((alert) => alert.event === event);
  }
}

test('G11 the tenth failure of a provider is reported at once with all its calls, and no more while there was an alert', async () => {
  const watched = new Watched({ m: [GOOD, GOOD, ...Array.from({ length: 30 }, () => BUSY)] });
  await watched.ask(11);
  expect(watched.named('provider_failing')).toEqual([]);
  await watched.ask(1);
  expect(watched.named('provider_failing')).toMatchObject([
    {
      ...{ provider: 'acme', requests: 12, failed_requests: 10, minutes: 5 },
      last: { model: 'm', status: 503, message: "The cluster cannot serve '…' now" },
    },
  ]);
  const reports = watched.reports.length;
  await watched.ask(15);
  expect(watched.reports).toHaveLength(reports);
});

test("G11 a provider whose failures are the caller's or the deployment's, or that mostly answers, is not failing", async () => {
  const wrong = refuse(400, { message: 'Invalid value' });
  const half = Array.from({ length: 24 }, (_, n) => (n % 2 === 0 ? GOOD : BUSY));
  const watched = new Watched({ wrong: [wrong], m: half });
  await watched.ask(12, 'acme/wrong');
  await watched.ask(24);
  expect(watched.alerts).toEqual([]);
});

test('G11 a refused key of the deployment is an alert at the first request, with the name of its secret', async () => {
  const watched = new Watched({ m: [REFUSED] });
  await watched.ask(3);
  expect(watched.named('credential_refused')).toMatchObject([
    {
      ...{
        provider: 'acme',
        model: 'm',
        setting: 'ACME_KEY',
        status: 401,
        error_code: 'upstream_credential',
      },
      message: 'Incorrect API key provided',
    },
  ]);
  expect(JSON.stringify(watched.alerts)).not.toContain('key-of-acme');
});

test("G11 with AUTH=passthrough a refused key is the caller's, and no alert", async () => {
  const watched = new Watched({ m: [REFUSED] }, { AUTH: 'passthrough', DEFAULT_PROVIDER: 'deepseek' });
  await watched.ask(2, 'deepseek/m');
  expect(watched.gateway.records.map(({ error_code }) => error_code)).not.toContain('upstream_credential');
  expect(watched.alerts).toEqual([]);
});

test('G11 a circuit that opens is an alert in words, unless a caller has misspelt a model', async () => {
  const watched = new Watched({ m: Array.from({ length: 7 }, () => BUSY), typo: [MISSING] });
  await watched.ask(2, 'acme/typo');
  await watched.ask(7);
  expect(watched.named('circuit_opened')).toMatchObject([
    { provider: 'acme', model: 'm', failures: 5, status: 503, open_until: expect.any(String) },
  ]);
  expect(watched.named('circuit_opened')[0]?.text).toMatch(
    /^the circuit of acme\/m is open.* after 5 failures: an isolate does not call it until .*503 /,
  );
});

test("G11 a target of an alias that does not exist is the deployment's mistake, and an alert", async () => {
  const watched = new Watched({ gone: [MISSING], m: [GOOD] }, { ALIASES: { chat: ['acme/gone', 'acme/m'] } });
  await watched.ask(1, 'chat');
  expect(watched.named('circuit_opened')).toMatchObject([{ model: 'gone', failures: 1, status: 404 }]);
});

test('G11 an object of alerts that fails changes no response and no record, and is not called again for a minute', async () => {
  const watched = new Watched({ m: [BUSY, BUSY, GOOD, BUSY] });
  watched.isBroken = true;
  await watched.ask(4);
  expect(watched.gateway.records.map(({ status }) => status)).toEqual([
    'failed',
    'failed',
    'finished',
    'failed',
  ]);
  // Each call is made twice.
  expect(watched.reports).toHaveLength(2);
});
