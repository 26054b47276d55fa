/** Budgets of the mode `running`: what is reserved, how it is extended while output runs, and how a stream ends by its budget. */
import { describe, expect, test } from 'vitest';
import { isObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { type Api, LIMIT, PROMPT, Running } from './running-gateway.ts';

const running = (tokens: number): JsonObject => ({ budget: { tokens, mode: 'running' } });

const WAYS: readonly (readonly [client: Api, model: string, stops: boolean])[] = [
  ['chat', 'own/llama', true],
  ['chat', 'stops/llama', true],
  ['messages', 'stops/llama', true],
  ['responses', 'stops/llama', true],
  ['chat', 'anthropic/claude-sonnet-4-5', true],
  ['messages', 'anthropic/claude-sonnet-4-5', true],
  ['responses', 'openai/gpt-4.1', true],
  ['messages', 'openai/gpt-4.1', true],
  ['gemini', 'stops/llama', true],
  ['gemini', 'google/gemini-2.5-flash', true],
  ['chat', 'goes-on/llama', false],
];

describe('G9 a stream under a running budget', () => {
  test.each(WAYS)(
    'of %s at %s ends as a reached limit when its budget is used up',
    async (client, model, stops) => {
      const tested = new Running();
      const token = await tested.gateway.key(running(6000));
      const events = await tested.events(await tested.send(token, client, model));
      // The prompt takes about 1,050 tokens, two slices 4,000, and there is no room for a third.
      expect(tested.written[0]).toBeGreaterThanOrEqual(4000);
      expect(tested.written[0]).toBeLessThan(4400);
      expect(tested.isCut).toEqual([true]);
      expectLimit(client, events);
      expect(tested.record).toMatchObject({ status: 'finished', ended_by: 'budget', estimated: true });
      expect(tested.gateway.logged.filter(({ event }) => event === 'budget_ended')).toHaveLength(1);
      const { spent, reserved } = await tested.budget(token);
      expect(reserved).toBe(0);
      // Where the provider goes on, all of its limit is billed.
      if (stops) {
        expect(spent).toBeGreaterThanOrEqual((tested.written[0] ?? 0) + PROMPT);
        expect(spent).toBeLessThanOrEqual(6200);
      } else expect(spent).toBeGreaterThanOrEqual(LIMIT);
    },
  );

  test('of 8,000 tokens makes six calls to the object, and is charged what was reported', async () => {
    const tested = new Running();
    tested.outputTokens = 8000;
    const token = await tested.gateway.key(running(50_000));
    await tested.events(await tested.send(token, 'chat', 'own/llama'));
    expect(tested.calls).toEqual([...Array<string>(5).fill('reserve'), 'settleReservation']);
    expect(await tested.budget(token)).toMatchObject({ spent: PROMPT + 100, reserved: 0 });
    expect(tested.record).not.toHaveProperty('ended_by');
  });

  test('of one slice makes one call before it and one after it', async () => {
    const tested = new Running();
    tested.outputTokens = 900;
    const token = await tested.gateway.key(running(50_000));
    await tested.events(await tested.send(token, 'chat', 'own/llama'));
    expect(tested.calls).toEqual(['reserve', 'settleReservation']);
  });

  test('is admitted where a hard budget refuses it', async () => {
    const tested = new Running();
    const [soft, hard] = [running(5000), { budget: { tokens: 5000, mode: 'hard' } }];
    const status = async (limits: JsonObject) =>
      (await tested.send(await tested.gateway.key(limits), 'chat', 'own/llama')).status;
    expect([await status(hard), await status(soft)]).toEqual([429, 200]);
  });

  test('that is cancelled is charged what was received and half a slice, if its provider stops', async () => {
    const tested = new Running();
    const token = await tested.gateway.key(running(100_000));
    const response = await tested.send(token, 'chat', 'stops/llama');
    const reader = response.body?.getReader();
    for (let seen = 0; seen < 3000; ) seen += String((await reader?.read())?.value).length / 20;
    await reader?.cancel();
    await tested.gateway.idle();
    const { spent, reserved } = await tested.budget(token);
    const written = tested.written[0] ?? 0;
    expect(reserved).toBe(0);
    expect(Number(spent)).toBeGreaterThan(written);
    expect(Number(spent)).toBeLessThan(written + 1000 + 1200);
  });

  test('of a model that may think unseen and has no known speed is admitted: its provider has models with one', async () => {
    const tested = new Running();
    tested.outputTokens = 900;
    const token = await tested.gateway.key(running(20_000));
    expect((await tested.send(token, 'chat', 'openai/gpt-9')).status).toBe(200);
  });

  test('of a server of one’s own that may hide output, and has no known speed, is admitted', async () => {
    const tested = new Running();
    tested.outputTokens = 900;
    const token = await tested.gateway.key(running(20_000));
    expect((await tested.send(token, 'chat', 'host/llama')).status).toBe(200);
  });

  test('is reserved whole if it is not streamed', async () => {
    const tested = new Running();
    const token = await tested.gateway.key(running(20_000));
    const response = await tested.send(token, 'chat', 'own/llama', { stream: false });
    expect(response.status).toBe(429);
    expect(await response.text()).toContain('may use up to 3');
  });

  test('goes on where the object fails and BUDGET_FAIL is open, and ends where it is closed', async () => {
    const ended: unknown[] = [];
    for (const fail of ['open', 'closed']) {
      const tested = new Running({ BUDGET_FAIL: fail });
      tested.outputTokens = 6000;
      const token = await tested.gateway.key(running(50_000));
      tested.beforeEvent = (written) => {
        if (written > 500) tested.gateway.trouble = 'fails';
        return new Promise(setImmediate);
      };
      await (await tested.send(token, 'chat', 'own/llama')).text();
      tested.gateway.trouble = 'none';
      await tested.gateway.idle();
      ended.push(tested.record?.ended_by);
    }
    expect(ended).toEqual([undefined, 'budget']);
  });

  test('whose extension reaches the object and whose answer is lost is extended once', async () => {
    const tested = new Running();
    tested.outputTokens = 2500;
    const token = await tested.gateway.key(running(50_000));
    let reserved = 0;
    tested.beforeEvent = async (written) => {
      tested.gateway.trouble = written >= 1000 && written < 1200 ? 'lost' : 'none';
      const [row] = tested.gateway.sql.exec<{ tokens: number }>('SELECT tokens FROM reservations').toArray();
      reserved = Math.max(reserved, row?.tokens ?? 0);
      await new Promise((resolve) => setTimeout(resolve, 1));
    };
    await tested.events(await tested.send(token, 'chat', 'own/llama'));
    expect(reserved).toBeLessThan(4000 + 1200);
    expect(await tested.budget(token)).toMatchObject({ spent: PROMPT + 100, reserved: 0 });
  });
});

function expectLimit(client: Api, events: readonly JsonObject[]): void {
  if (client === 'chat') {
    const finishes = events.flatMap((event) => objectsOf(event.choices)).map((one) => one.finish_reason);
    expect(finishes.filter((finish) => finish !== null && finish !== undefined)).toEqual(['length']);
  } else if (client === 'messages') {
    const types = events.map(({ type }) => textOf(type));
    expect(types.slice(-3)).toEqual(['content_block_stop', 'message_delta', 'message_stop']);
    const delta = events.find(({ type }) => type === 'message_delta');
    expect(delta).toMatchObject({ delta: { stop_reason: 'max_tokens' } });
    expect(Number(objectOf(delta?.usage).output_tokens)).toBeGreaterThan(3900);
  } else if (client === 'gemini') {
    const finishes = events.flatMap((event) => objectsOf(event.candidates)).map((one) => one.finishReason);
    expect(finishes.filter((finish) => finish !== undefined)).toEqual(['MAX_TOKENS']);
    expect(Number(objectOf(events.at(-1)?.usageMetadata).candidatesTokenCount)).toBeGreaterThan(3900);
  } else {
    const last = events.at(-1);
    const response = objectOf(last?.response);
    expect(response).toMatchObject({
      ...{ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
      output: [{ type: 'message', status: 'incomplete' }],
    });
    const deltas = events.filter(({ type }) => type === 'response.output_text.delta');
    const text = deltas.map(({ delta }) => textOf(delta)).join('');
    const [item] = objectsOf(response.output);
    expect(objectsOf(item?.content).map((part) => part.text)).toEqual([text]);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, i) => i));
    const done = events.filter(({ type }) => type === 'response.output_item.done');
    expect(done.map((event) => isObject(event.item) && event.item.status)).toEqual(['incomplete']);
  }
}
