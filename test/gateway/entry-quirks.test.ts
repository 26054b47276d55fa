/** An entry of PROVIDERS that names its server's quirks as data: what goes up, and what the client gets reported (Q1, Q5, Q9). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { readSettings } from '../settings/read-settings.ts';
import { answerWith, RoutedGateway, read, settle } from './upstreams.ts';

const ACME = {
  base_url: 'https://acme/v1',
  rename: { max_completion_tokens: 'max_tokens', seed: 'random_seed' },
  drop: ['logit_bias', 'presence_penalty'],
  roles: { developer: 'system' },
  effort: { minimal: 'low', xhigh: 'high' },
  reasoning: 'reasoning',
};

async function ask(fields: JsonObject, entry: JsonObject = ACME, headers: Record<string, string> = {}) {
  const routed = new RoutedGateway({ a: [answerWith('Hi')] }, { PROVIDERS: { acme: entry } });
  const got = await read(await routed.ask({ model: 'acme/a', ...fields }, { headers }));
  return { ...got, body: routed.requests[0]?.body, dropped: got.headers.get('x-weir-dropped') };
}

describe('an entry with quirks', () => {
  test('rename: the server gets its own names, and nothing is reported to the client', async () => {
    const { text, body, dropped } = await ask({ max_completion_tokens: 64, seed: 7 });
    expect(text).toBe('Hi');
    expect(body).toMatchObject({ max_tokens: 64, random_seed: 7 });
    expect(body).not.toHaveProperty('max_completion_tokens');
    expect(body).not.toHaveProperty('seed');
    expect(dropped).toBeNull();
  });

  test('drop: the field is left out, though it changes the answer, and named; its default is left out in silence', async () => {
    const { status, body, dropped } = await ask({ logit_bias: { 5: 1 }, presence_penalty: 0 });
    expect(status).toBe(200);
    expect(body).not.toHaveProperty('logit_bias');
    expect(body).not.toHaveProperty('presence_penalty');
    expect(dropped).toBe('logit_bias');
  });

  test('drop, where UNSUPPORTED is refuse: 400 that names the field', async () => {
    const routed = new RoutedGateway(
      { a: [answerWith('Hi')] },
      { PROVIDERS: { acme: ACME }, UNSUPPORTED: 'refuse' },
    );
    const { status, error } = await read(await routed.ask({ model: 'acme/a', logit_bias: { 5: 1 } }));
    expect([status, error?.code, error?.param]).toEqual([400, 'unsupported_parameter', 'logit_bias']);
  });

  test('roles, effort and reasoning: in the server’s words', async () => {
    const messages = [
      { role: 'developer', content: 'Be brief' },
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi', reasoning_content: 'Hm' },
      { role: 'user', content: 'Again' },
    ];
    const { body } = await ask({ messages, reasoning_effort: 'minimal' });
    expect(body?.reasoning_effort).toBe('low');
    expect(body?.messages).toEqual([
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi', reasoning: 'Hm' },
      { role: 'user', content: 'Again' },
    ]);
  });

  test('over the table of a known provider: its rows stay', async () => {
    const entry = { base_url: 'https://acme/v1', like: 'cerebras', drop: ['seed'] };
    const { body, dropped } = await ask({ max_tokens: 9, seed: 7 }, entry);
    expect(body).toMatchObject({ max_completion_tokens: 9 });
    expect(body).not.toHaveProperty('seed');
    expect(dropped).toBe('seed');
  });

  test('without quirks: all of it goes up as it is', async () => {
    const { body, dropped } = await ask({ seed: 7, logit_bias: { 5: 1 } }, { base_url: 'https://acme/v1' });
    expect(body).toMatchObject({ seed: 7, logit_bias: { 5: 1 } });
    expect(dropped).toBeNull();
  });
});

describe('Q17 an entry with models', () => {
  const ENTRY = { base_url: 'https://host/v1', like: 'openai', models: { 'my-gpt': 'openai/gpt-6.1-terra' } };

  async function askFor(model: string, fields: JsonObject = {}) {
    const routed = new RoutedGateway(
      { 'my-gpt': [answerWith('Hi')], 'gpt-6.1-terra': [answerWith('Hi')] },
      { PROVIDERS: { host: ENTRY } },
    );
    const got = await read(await routed.ask({ model: `host/${model}`, ...fields }));
    await settle();
    return { got, body: routed.requests[0]?.body, record: routed.records[0] };
  }

  test('the server gets its own name, and the request is written by the rules of the model behind it', async () => {
    const { got, body } = await askFor('my-gpt', { temperature: 0.5, max_tokens: 64 });
    expect(body).toMatchObject({ model: 'my-gpt', max_completion_tokens: 64 });
    expect(body).not.toHaveProperty('temperature');
    expect(got.headers.get('x-weir-dropped')).toBe('temperature');
    expect(got.headers.get('x-weir-model')).toBe('my-gpt');
    expect((await askFor('other', { temperature: 0.5 })).body).toHaveProperty('temperature');
  });

  test('its price is the maker’s, as an estimate; another name has none', async () => {
    const { record } = await askFor('my-gpt');
    expect(record).toMatchObject({ model: 'my-gpt', currency: 'USD', cost_estimated: true });
    expect(record?.cost_nanos).toBeGreaterThan(0);
    expect((await askFor('gpt-6.1-terra')).record?.cost_nanos).toBeNull();
  });

  test.each([
    ['a list', ['hunter2']],
    ['a model without a maker', { a: 'hunter2' }],
    ['a number', { a: 7 }],
    ['an empty name', { '': 'openai/gpt-4o' }],
  ])('%s: misconfigured, by name and without the value', (_, models) => {
    const settings = readSettings({ PROVIDERS: { host: { ...ENTRY, models } } });
    expect(settings).toMatchObject({
      problems: [
        {
          setting: 'PROVIDERS',
          message: expect.stringMatching(/^host: models must be an object of at most 200 names and models/),
        },
      ],
    });
    expect(JSON.stringify(settings)).not.toContain('hunter2');
  });
});
