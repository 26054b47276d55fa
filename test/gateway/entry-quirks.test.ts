/** An entry of PROVIDERS that names its server's quirks as data: what goes up, and what the client gets reported (Q1, Q5, Q9). */
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { answerWith, RoutedGateway, read } from './upstreams.ts';

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
