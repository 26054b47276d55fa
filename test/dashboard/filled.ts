/** Starts a gateway with keys and sample records of two weeks, for tests of the page. */

import { demoKeys } from '../../tools/simulator/demo-fill.ts';
import { demoRecords, demoSession, fill } from '../../tools/simulator/demo-records.ts';
import { decodeObject, type JsonObject, textOf } from '../../tools/simulator/json.ts';
import { ADMIN_TOKEN, type Gateway, type GatewayOptions, startGateway } from '../e2e/gateway.ts';

export const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };

export interface NewGatewayKey {
  readonly id: string;
  readonly token: string;
}

export interface Filled extends AsyncDisposable {
  readonly gateway: Gateway;
  readonly page: string;
  /** One key with limits and a budget, of which the samples use a part whatever the day of the month is, and two without. */
  readonly keys: readonly [web: NewGatewayKey, agents: NewGatewayKey, evals: NewGatewayKey];
}

const SAMPLES = 400;
/** With the session of twenty requests. */
export const RECORDS = SAMPLES + 20;

export async function startFilled(options: GatewayOptions = {}): Promise<Filled> {
  const vars: Record<string, string | undefined> = { AUTH: 'keys', ...options.vars };
  const gateway = await startGateway({
    entrypoint: '../../tools/simulator/filled-worker.ts',
    ...options,
    vars,
  });
  const web = await makeKey(gateway, {
    name: 'web app',
    models: ['deepseek/*', 'mistral/*'],
    budget: { USD: 0.2, per: 'total' },
    rpm: 60,
  });
  const agents = await makeKey(gateway, { name: 'agents', max_concurrent: 8 });
  const evals = await makeKey(gateway, { name: 'nightly evals', expires_at: '2999-01-01' });
  const now = Date.now();
  const samples = demoRecords(SAMPLES, demoKeys(web.id, agents.id, evals.id), now);
  await fill(gateway.url, [...samples, ...demoSession(agents.id, now)]);
  return {
    gateway,
    page: `${gateway.url}${vars.BASE_PATH ?? ''}/dashboard`,
    keys: [web, agents, evals],
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

export async function makeKey(gateway: Gateway, body: JsonObject, base = ''): Promise<NewGatewayKey> {
  const response = await gateway.post(`${base}/admin/keys`, body, { headers: ADMIN });
  const made = decodeObject(await response.text());
  return { id: textOf(made?.id), token: textOf(made?.key) };
}
