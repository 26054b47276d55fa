/** Tests targets, fallbacks and retries in workerd (R1-R12). `routing-faults.slow.test.ts` has every fault. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectOf, objectsOf } from '../../tools/simulator/json.ts';
import { chat, errorOf, jsonOf, streamedChat } from './client.ts';
import { answerOf, CHAT, GOOD, STEP_SECONDS, startRouting, UNREACHABLE } from './routing-scenarios.ts';

const routing = startRouting();

test.each([true, false])(
  'R4 R9 a target that is overloaded (streamed: %s): the next one sends one complete response',
  async (stream) => {
    const { response, text, upstreams } = await routing().ask(chat('first openai/503', { stream }));
    expect(answerOf(text).finishes).toEqual(['stop']);
    expect(text).toContain(`"model":"${GOOD}"`);
    expect(response.headers.get('x-weir-attempts')).toMatch(
      /^openai\/503 503 \d+ms, mistral\/\S+ 200 \d+ms$/,
    );
    expect(objectsOf((await routing().recordOf(response)).attempts)).toHaveLength(2);
    await Promise.all(upstreams.map(({ closed }) => closed));
  },
);

test('R5 a target that breaks after its first output: the error ends the response, and no other is tried', async () => {
  const { response, text, upstreams } = await routing().ask(streamedChat('first openai/cut-content'));
  expect(text.match(/"error":/g)).toHaveLength(1);
  expect(upstreams).toHaveLength(1);
  expect((await routing().recordOf(response)).status).toBe('failed');
});

describe('R4 AUTH=passthrough', () => {
  beforeAll(() => routing().gateway.set({ ...routing().vars, AUTH: 'passthrough' }));
  afterAll(() => routing().gateway.set(routing().vars));
  const withKey = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

  test.each(['401', '402', '403', '404'])(
    'a %s is the caller’s mistake: no other target is tried',
    async (name) => {
      for (const stream of [true, false]) {
        const body = chat(`openai/${name}`, { models: ['openai/gpt-4o-mini'], stream });
        const { response, upstreams } = await routing().ask(body, withKey('sim-own'));
        expect([response.status, upstreams.length]).toEqual([Number(name), 1]);
      }
    },
  );

  test('only targets of the first one’s provider are tried: no other provider gets the key', async () => {
    const body = chat('openai/503', { models: [GOOD, 'openai/gpt-4o-mini'] });
    const { response, upstreams } = await routing().ask(body, withKey('sim-own'));
    expect(response.headers.get('x-weir-attempts')).toMatch(
      /^mistral\/mistral-small-latest other_provider, openai\/503 503 \d+ms, openai\/gpt-4o-mini 200 /,
    );
    expect(upstreams.map(({ body: sent }) => sent?.model)).toEqual(['503', 'gpt-4o-mini']);
  });
});

test('R8 if all fail, the error is the last one’s and lists the attempts', async () => {
  for (const stream of [true, false]) {
    const body = chat('openai/500', { models: [UNREACHABLE, 'deepseek/429'], stream });
    const response = await routing().gateway.post(CHAT, body);
    const { status, error } = await errorOf(response);
    expect([status, error.code]).toEqual([429, 'code_429']);
    expect(error.message).toBe(
      'DeepSeek: no (tried 3 times: openai/500 500, opentoken/anything upstream_unreachable, deepseek/429 429)',
    );
    expect(await routing().recordOf(response)).toMatchObject({
      status: 'failed',
      provider: 'deepseek',
      total_tokens: 0,
    });
  }
});

describe('R6 retry rounds', () => {
  beforeAll(() => routing().gateway.set({ ...routing().vars, RETRIES: undefined }));

  test.each([true, false])(
    'a model that is busy once is retried, by default (streamed: %s)',
    async (stream) => {
      routing().failing.set('gpt-4o-mini', 1);
      const { response, text, upstreams } = await routing().ask(chat('openai/gpt-4o-mini', { stream }));
      expect(answerOf(text).finishes).toEqual(['stop']);
      expect(upstreams).toHaveLength(2);
      expect(response.headers.get('x-weir-attempts')).toMatch(
        /^openai\/gpt-4o-mini 503 \d+ms, openai\/gpt-4o-mini 200 /,
      );
    },
  );

  test('a model with a retry-after of a minute is not', async () => {
    const { response, upstreams } = await routing().ask(chat('openai/429-later'));
    expect([response.status, response.headers.get('retry-after'), upstreams.length]).toEqual([429, '60', 1]);
  });
});

describe('R9 T4 a client that disconnects', () => {
  beforeAll(() => routing().gateway.set({ ...routing().vars, HEARTBEAT_SECONDS: '0.2', RETRIES: '5' }));

  test.each(['nothing', 'role-then-nothing'])(
    '%s: before any output: its upstream is cancelled, and no other target is tried',
    async (name) => {
      const before = routing().gateway.simulator.requests.length;
      const client = new AbortController();
      const body = streamedChat('openai/503', { models: [`openai/${name}`, GOOD] });
      const pending = routing().gateway.post(CHAT, body, { signal: client.signal });
      pending.catch(() => {});
      const upstream = await routing().gateway.simulator.request(before + 1);
      client.abort();
      expect(await upstream.closed).toBe('disconnected');
      const later = await routing().ask(chat(GOOD));
      const record = await routing().recordOf(later.response);
      expect(record.status).toBe('finished');
      expect(routing().gateway.simulator.requests).toHaveLength(before + 3);
      const lines = routing()
        .gateway.logs()
        .filter((line) => line.includes(`"model":"${name}"`) && line.includes('cancelled'));
      expect(lines.length).toBeGreaterThan(0);
    },
  );
});

test('R7 a target that fails five consecutive times is skipped by the next requests', async () => {
  await routing().gateway.set({ ...routing().vars, ALIASES: JSON.stringify({ both: ['openai/503', GOOD] }) });
  const reported: (string | null)[] = [];
  for (let i = 0; i < 7; i++)
    reported.push((await routing().ask(chat('both'))).response.headers.get('x-weir-attempts'));
  expect(reported.slice(0, 5).every((text) => text?.startsWith('openai/503 503 '))).toBe(true);
  for (const text of reported.slice(5))
    expect(text).toMatch(/^openai\/503 circuit_open, mistral\/\S+ 200 \d+ms$/);
});

test('R2 R11 one conversation stays with one target, and the alias is reported and listed', async () => {
  const steps = [
    { model: 'openai/gpt-4o-mini', weight: 1 },
    { model: GOOD, weight: 1 },
  ];
  await routing().gateway.set({
    ...routing().vars,
    ALIASES: JSON.stringify({ both: steps, 'claude-*': GOOD }),
  });
  const pick = async (user: string) => {
    const { response } = await routing().ask(chat('both', { user }));
    expect(response.headers.get('x-weir-alias')).toBe('both');
    return response.headers.get('x-weir-model');
  };
  const picks = async () => Promise.all(Array.from({ length: 16 }, (_, i) => pick(`user ${i}`)));
  const first = await picks();
  expect(await picks()).toEqual(first);
  expect(new Set(first).size).toBe(2);
  const { data } = await jsonOf(await routing().gateway.fetch('/v1/models'));
  const own = objectsOf(data).filter(({ owned_by }) => owned_by === 'weir');
  expect(own.map(({ id }) => id)).toEqual(['both']);
  expect((await routing().ask(chat('claude-opus-9'))).response.headers.get('x-weir-model')).toBe(
    'mistral-small-latest',
  );
});

describe('Y7 sessions of ten turns at two weighted targets whose providers cache prompts', () => {
  const TARGETS = ['openai/gpt-6.1-terra', 'openai/gpt-6.2-astra'];
  beforeAll(() => {
    const both = TARGETS.map((model) => ({ model, weight: 1 }));
    return routing().gateway.set({ ...routing().vars, ALIASES: JSON.stringify({ both }) });
  });

  interface Turn {
    readonly model: string;
    readonly cached: number;
  }

  /** Runs the turns of one conversation. `sessionOf` and `onTurn` get the number of the turn. */
  async function converse(
    topic: string,
    sessionOf: (turn: number) => string,
    onTurn: (turn: number, last: Turn | undefined) => void = () => {},
  ): Promise<Turn[]> {
    const messages: JsonObject[] = [];
    const turns: Turn[] = [];
    for (let turn = 0; turn < 10; turn++) {
      onTurn(turn, turns.at(-1));
      messages.push({ role: 'user', content: `${topic}, question ${turn}` });
      const headers = { 'x-weir-session': sessionOf(turn) };
      const body = { model: 'both', messages, reasoning_effort: 'low' };
      const response = await routing().gateway.post(CHAT, body, { headers });
      const { choices, usage } = await jsonOf(response);
      const { cached_tokens } = objectOf(objectOf(usage).prompt_tokens_details);
      turns.push({
        model: String(response.headers.get('x-weir-model')),
        cached: Number(cached_tokens),
      });
      messages.push(objectOf(objectsOf(choices)[0]?.message));
    }
    return turns;
  }

  const cachedOf = (turns: readonly Turn[]) => turns.map(({ cached }) => cached);
  const isRising = (counts: readonly number[]) =>
    counts.every((count, i) => i < 2 || count > Number(counts[i - 1]));

  test('O6 each stays on one target with one key of the prompt cache, and its cached tokens rise with each turn', async () => {
    const models = new Set<string>();
    for (let session = 0; session < 6; session++) {
      const before = routing().gateway.simulator.requests.length;
      const turns = await converse(`Kept ${session}`, () => `kept-${session}`);
      const requests = routing().gateway.simulator.requests.slice(before);
      expect(new Set(requests.map(({ body }) => body?.prompt_cache_key))).toEqual(
        new Set([expect.stringMatching(/^[0-9a-f]{32}$/)]),
      );
      expect(new Set(turns.map(({ model }) => model)).size).toBe(1);
      const cached = cachedOf(turns);
      expect([cached, isRising(cached)]).toEqual([cached, true]);
      models.add(String(turns[0]?.model));
    }
    expect(models.size).toBe(2);
  });

  test('without affinity they change targets, and the cached tokens do not rise', async () => {
    const kept = await converse('Together', () => 'together');
    const spread = await converse('Scattered', (turn) => `scattered-${turn}`);
    expect(new Set(spread.map(({ model }) => model)).size).toBe(2);
    expect(isRising(cachedOf(spread))).toBe(false);
    const sum = (turns: readonly Turn[]) => cachedOf(turns).reduce((a, b) => a + b, 0);
    expect(sum(spread)).toBeLessThan(sum(kept));
  });

  test('one whose target is down moves once, stays there, and returns', async () => {
    let home = '';
    const turns = await converse(
      'Moved',
      () => 'moved',
      (turn, last) => {
        home ||= last?.model ?? '';
        if (turn === 3) routing().failing.set(home, Number.POSITIVE_INFINITY);
        if (turn === 7) routing().failing.set(home, 0);
      },
    );
    const models = turns.map(({ model }) => model);
    const away = TARGETS.map((target) => target.slice('openai/'.length)).find((model) => model !== home);
    expect(models).toEqual([home, home, home, away, away, away, away, home, home, home]);
  });
});

test('R5 R9 M1 60 at once, while one of three targets comes and goes: every client gets one complete response', async () => {
  const COUNT = 60;
  const ways = ['openai/flapping', 'openai/role-then-nothing', 'openai/error-first', UNREACHABLE];
  const aliases = Object.fromEntries(
    ways.map((model, i) => [
      `way${i}`,
      [{ model, timeout_seconds: STEP_SECONDS }, GOOD, 'deepseek/deepseek-chat'],
    ]),
  );
  await routing().gateway.set({
    ...routing().vars,
    HEARTBEAT_SECONDS: '0.2',
    RETRIES: '1',
    ALIASES: JSON.stringify(aliases),
  });
  routing().failing.set('flapping', COUNT);
  const requested = Array.from({ length: COUNT }, (_, i) => {
    const stream = i % 3 !== 0;
    return routing()
      .gateway.post(CHAT, chat(`way${i % ways.length}`, { stream }))
      .then(async (response) => {
        return { response, text: await response.text() };
      });
  });
  const before = (await Promise.all(requested)).map(({ response, text }) => {
    const { finishes } = answerOf(text.replaceAll(': heartbeat\n\n', ''));
    const named = new Set(text.match(/"model":"[^"]+"/g));
    return [response.status, finishes, named.size, text.includes('"error"')];
  });
  expect(new Set(before.map((one) => JSON.stringify(one)))).toEqual(
    new Set([JSON.stringify([200, ['stop'], 1, false])]),
  );
  const records = await Promise.all(
    (await Promise.all(requested)).map(({ response }) => routing().gateway.record(response)),
  );
  expect(new Set(records.map(({ request_id }) => request_id)).size).toBe(COUNT);
  expect(records.every(({ status }) => status === 'finished')).toBe(true);
  await Promise.all(routing().gateway.simulator.requests.map(({ closed }) => closed));
});
