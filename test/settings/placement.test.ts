/** Where Durable Objects are (W6): in the jurisdiction that was chosen before the first key, and nowhere else. */
import { expect, test } from 'vitest';
import { NO_LIMITS } from '../../src/auth/key-limits.ts';
import { inJurisdiction, type PlaceableNamespace } from '../../src/settings/placement.ts';
import { decodeObject, type JsonObject, objectOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from '../gateway/limited-gateway.ts';
import { MemoryStore } from '../metering/records.ts';

const ADMIN = 'admin';

interface Call {
  readonly jurisdiction: string | null;
  readonly name: string;
  readonly method: string;
  readonly locationHint: string | undefined;
}

/** A namespace that answers every call with nothing, and remembers where it was sent. */
function recorder(calls: Call[], jurisdiction: string | null = null): PlaceableNamespace<object> {
  return {
    jurisdiction: (other) => recorder(calls, other),
    getByName: (name, { locationHint } = {}) =>
      new Proxy(
        {},
        {
          get: (_, method) => async () => {
            calls.push({ jurisdiction, name, method: String(method), locationHint });
            return { kind: 'limits', limits: { ...NO_LIMITS, rpm: 5 } };
          },
        },
      ),
  };
}

class Deployment {
  readonly calls: Call[] = [];
  readonly store: MemoryStore;

  constructor(store = new MemoryStore()) {
    this.store = store;
  }

  /** A new isolate with these settings. */
  open(settings: JsonObject): LimitedGateway {
    const store = this.store as never;
    return new LimitedGateway({ WEIR_KV: store, WEIR_LEDGER: recorder(this.calls), ...settings }, { store });
  }

  async makeKey(settings: JsonObject, fields: JsonObject = { rpm: 5 }): Promise<JsonObject> {
    const made = await this.open(settings).post('/admin/keys', ADMIN, { name: 'k', ...fields });
    return { status: made.status, ...decodeObject(await made.text()) };
  }
}

const EU = { JURISDICTION: 'eu', LOCATION_HINT: 'weur' };

test('W6 objects are in the jurisdiction, and are created near the hint', async () => {
  const deployment = new Deployment();
  const { status, id } = await deployment.makeKey(EU);
  expect(status).toBe(201);
  expect(deployment.calls).toEqual([
    { jurisdiction: 'eu', name: id, method: 'changeLimits', locationHint: 'weur' },
  ]);
});

test('W6 a hint alone changes no object, at any time', async () => {
  const deployment = new Deployment();
  await deployment.makeKey({});
  expect((await deployment.makeKey({ LOCATION_HINT: 'oc' })).status).toBe(201);
  expect(deployment.calls.map(({ jurisdiction, locationHint }) => [jurisdiction, locationHint])).toEqual([
    [null, undefined],
    [null, 'oc'],
  ]);
});

test.each<[what: string, first: JsonObject, then: JsonObject, fields: JsonObject]>([
  ['set after the first key', {}, EU, { rpm: 5 }],
  ['set after the first key, which has no limits', {}, EU, {}],
  ['changed', EU, { JURISDICTION: 'us' }, { rpm: 5 }],
  ['removed', EU, {}, { rpm: 5 }],
  ['removed after a key without limits', EU, {}, {}],
])('W6 a jurisdiction that is %s is an error, and no object is called', async (_, first, then, fields) => {
  const deployment = new Deployment();
  expect((await deployment.makeKey(first, fields)).status).toBe(201);
  deployment.calls.length = 0;
  const made = await deployment.makeKey(then);
  expect(made.status).toBe(500);
  expect(objectOf(made.error)).toMatchObject({ code: 'misconfigured', param: 'JURISDICTION' });
  expect(deployment.calls).toEqual([]);
  // What it was before works on.
  expect((await deployment.makeKey(first)).status).toBe(201);
});

test.each(['"eu"', '[]', '{}', '{"jurisdiction":7}'])(
  'W6 config/place that is %j is no permission: an error, with and without JURISDICTION, and no object is called',
  async (marker) => {
    const deployment = new Deployment();
    await deployment.store.asStore.put('config/place', marker);
    for (const settings of [EU, {}]) {
      const made = await deployment.makeKey(settings);
      expect([made.status, objectOf(made.error)]).toMatchObject([
        500,
        { code: 'misconfigured', message: expect.stringContaining('config/place in KV') },
      ]);
    }
    expect(deployment.calls).toEqual([]);
    expect(await deployment.store.asStore.get('config/place', 'json')).toEqual(JSON.parse(marker));
  },
);

test('W6 a key with limits is refused under another jurisdiction, also with BUDGET_FAIL=open', async () => {
  const deployment = new Deployment();
  const token = String((await deployment.makeKey(EU)).key);
  deployment.calls.length = 0;
  for (const BUDGET_FAIL of ['closed', 'open']) {
    const gateway = deployment.open({ BUDGET_FAIL });
    const response = await gateway.ask(token);
    expect([response.status, objectOf(decodeObject(await response.text())?.error).code]).toEqual([
      500,
      'misconfigured',
    ]);
    expect(gateway.sent).toEqual([]);
  }
  expect(deployment.calls).toEqual([]);
});

test('W6 after the check, an isolate reads KV for it no more', async () => {
  const deployment = new Deployment();
  const gateway = deployment.open(EU);
  let reads = 0;
  const get = deployment.store.get.bind(deployment.store);
  deployment.store.get = (names) => {
    if (names === 'config/place') reads++;
    return get(names);
  };
  for (let n = 0; n < 3; n++) await gateway.post('/admin/keys', ADMIN, { name: 'k', rpm: 5 });
  // One for the route, and one for the feature.
  expect(reads).toBe(2);
});

test.each([
  ['JURISDICTION', 'mars'],
  ['LOCATION_HINT', 'here'],
])('W6 %s=%s is an invalid setting', (name, value) => {
  expect(() => new Deployment().open({ [name]: value })).toThrow(name);
});

test('W6 an object calls the others in its own jurisdiction', () => {
  const calls: Call[] = [];
  const namespace = recorder(calls);
  for (const own of [undefined, 'eu'])
    Reflect.apply(Reflect.get(inJurisdiction(namespace, own).getByName('*'), 'takeDays'), null, []);
  expect(calls.map(({ jurisdiction }) => jurisdiction)).toEqual([null, 'eu']);
});
