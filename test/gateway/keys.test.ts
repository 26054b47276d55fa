/** Tests that a key that could never be used is refused, or created with a warning that says why. */
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';

async function read(response: Response): Promise<JsonObject> {
  return decodeObject(await response.text()) ?? {};
}

async function create(gateway: LimitedGateway, body: JsonObject) {
  const response = await gateway.post('/admin/keys', 'admin', { name: 'test', ...body });
  return { status: response.status, ...(await read(response)) } as JsonObject;
}

const ALIASES = { fast: ['openai/gpt-4o-mini', 'deepseek/deepseek-flash'] };

describe('K4 a new key', () => {
  test.each<[string, JsonObject]>([
    ['no limits', {}],
    ['globs that match', { models: ['deepseek/*', 'open*/gpt-4o*', '*', 'openai/made-up'] }],
    ['a budget in dollars', { models: ['openai/*'], budget: { USD: 5 } }],
    ['a budget in tokens, of any model', { models: ['openai/made-up'], budget: { tokens: 5 } }],
  ])('%s: is created without a warning', async (_, body) => {
    const created = await create(new LimitedGateway({ ALIASES }), body);
    expect(created.status).toBe(201);
    expect(created).not.toHaveProperty('warnings');
  });

  test.each(['hard', 'warn'])(
    'a %s budget in a currency without any price: 400, and no key',
    async (mode) => {
      const gateway = new LimitedGateway();
      const { status, error } = await create(gateway, { budget: { EUR: 5, mode } });
      expect(status).toBe(400);
      expect(error).toMatchObject({ param: 'budget', message: expect.stringContaining('USD, tokens') });
      const { data } = await read(await gateway.fetch('/admin/keys', 'admin'));
      expect(data).toEqual([]);
    },
  );

  test('a budget in a currency of the deployment’s own prices is accepted, and the currency is listed as a unit', async () => {
    const price = {
      provider: 'openai',
      models: ['*'],
      since: '2020-01-01',
      currency: 'EUR',
      input: 1,
      output: 2,
    };
    const gateway = new LimitedGateway({ PRICES: [price] });
    const created = await create(gateway, { budget: { EUR: 5 } });
    expect([created.status, created.warnings]).toEqual([201, undefined]);
    const { budget_units } = await read(await gateway.fetch('/admin/keys', 'admin'));
    expect(budget_units).toEqual(['USD', 'EUR', 'tokens']);
  });

  test.each<[JsonObject, string, RegExp]>([
    [{ models: ['deepsek/*'] }, 'models', /no provider deepsek\. Did you mean deepseek\/\*\?/],
    [{ models: ['nowhere/x', 'openai/*'] }, 'models', /no provider nowhere\. Providers here: .*openai/],
    [{ models: ['mistral/*'] }, 'models', /the provider mistral is not set up/],
    [{ models: ['gpt-4o'] }, 'models', /gpt-4o matches no model: write openai\/gpt-4o/],
    [
      { models: ['fast'] },
      'models',
      /fast is an alias.*: name openai\/gpt-4o-mini, deepseek\/deepseek-flash/,
    ],
    [{ models: ['openai/made-up'], budget: { USD: 5 } }, 'budget', /has a price in USD/],
    [{ budget: { tokens: 0 } }, 'budget', /A hard budget of 0/],
  ])('%j: is created, with a warning about %s', async (body, param, message) => {
    const created = await create(new LimitedGateway({ ALIASES }), body);
    expect(created.status).toBe(201);
    expect(objectsOf(created.warnings)).toEqual([{ param, message: expect.stringMatching(message) }]);
  });

  test.each([
    [['openai/*'], ['openai/gpt-4o-mini', 'openai/mine'], /alias mixed: openai\/mine .* skips these steps/],
    [null, ['openai/mine', 'deepseek/mine'], /openai\/mine, deepseek\/mine .* refuses it/],
  ])(
    'with a hard budget and an alias that has steps without a price, for the models %j: a warning names them',
    async (models, steps, message) => {
      const gateway = new LimitedGateway({ ALIASES: { mixed: steps, tokens: ['openai/gpt-4o-mini'] } });
      const created = await create(gateway, { models, budget: { USD: 5 } });
      expect(objectsOf(created.warnings)).toEqual([
        { param: 'budget', message: expect.stringMatching(message) },
      ]);
      const inTokens = await create(gateway, { name: 'in tokens', models, budget: { tokens: 5 } });
      expect(inTokens.warnings).toBeUndefined();
    },
  );

  test('with the name of another key: is created, with a warning that names its id; so is a key that is renamed', async () => {
    const gateway = new LimitedGateway();
    const first = await create(gateway, { name: 'ci' });
    expect(first).not.toHaveProperty('warnings');
    const second = await create(gateway, { name: 'ci' });
    const warning = { param: 'name', message: `Another key has this name: ${textOf(first.id)}` };
    expect([second.status, second.warnings]).toEqual([201, [warning]]);
    const third = await create(gateway, { name: 'other' });
    expect(third).not.toHaveProperty('warnings');
    const change = (body: JsonObject) =>
      gateway.fetch(`/admin/keys/${textOf(third.id)}`, 'admin', {
        method: 'PATCH',
        body: JSON.stringify(body),
      });
    const renamed = await read(await change({ name: 'ci' }));
    expect(textOf(objectsOf(renamed.warnings)[0]?.message)).toMatch(/^2 other keys have this name: /);
    expect(await read(await change({ rpm: 5 }))).not.toHaveProperty('warnings');
    await gateway.fetch(`/admin/keys/${textOf(first.id)}`, 'admin', { method: 'DELETE' });
    await gateway.fetch(`/admin/keys/${textOf(second.id)}`, 'admin', { method: 'DELETE' });
    expect(await read(await change({ name: 'ci' }))).not.toHaveProperty('warnings');
  });

  test('where AUTH takes no gateway keys: is created, with a warning', async () => {
    const { warnings } = await create(new LimitedGateway({ AUTH: 'open' }), {});
    expect(warnings).toEqual([{ param: null, message: expect.stringContaining('AUTH=open') }]);
  });
});

describe('K4 a changed key', () => {
  async function change(gateway: LimitedGateway, id: unknown, body: JsonObject) {
    const init = { method: 'PATCH', body: JSON.stringify(body) };
    const response = await gateway.fetch(`/admin/keys/${textOf(id)}`, 'admin', init);
    return { status: response.status, ...(await read(response)) } as JsonObject;
  }

  test('globs that match nothing and a currency without prices: a warning, and a 400 that changes nothing', async () => {
    const gateway = new LimitedGateway();
    const { id } = await create(gateway, { models: ['openai/*'] });
    const globbed = await change(gateway, id, { models: ['opnai/*'] });
    expect([globbed.status, objectsOf(globbed.warnings)]).toEqual([
      200,
      [{ param: 'models', message: expect.stringContaining('Did you mean openai/*?') }],
    ]);
    const refused = await change(gateway, id, { name: 'other', budget: { EUR: 1 } });
    expect([refused.status, refused.error]).toEqual([400, expect.objectContaining({ param: 'budget' })]);
    expect(await read(await gateway.fetch(`/admin/keys/${textOf(id)}`, 'admin'))).toMatchObject({
      name: 'test',
      limits: null,
    });
    const mended = await change(gateway, id, { models: ['openai/*'] });
    expect([mended.status, mended.warnings]).toEqual([200, undefined]);
  });

  test('a change of an expired key: a warning says that it has expired', async () => {
    let now = Date.now();
    const clock = { now: () => now, startTimer: () => () => {} };
    const gateway = new LimitedGateway({}, { clock });
    const { id } = await create(gateway, { expires_at: new Date(now + 1000).toISOString() });
    now += 2000;
    const { warnings } = await change(gateway, id, { name: 'renamed' });
    expect(warnings).toEqual([{ param: 'expires_at', message: expect.stringContaining('expired') }]);
  });
});
