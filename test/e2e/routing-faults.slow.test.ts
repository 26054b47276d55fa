/**
 * Tests all failures of a target: before and after its first output, streaming and non-streaming, before and after a
 * heartbeat (R4, R5, R9).
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JsonObject, objectsOf } from '../../tools/simulator/json.ts';
import { chat, DONE, finishesOf, framesOf, streamedChat } from './client.ts';
import { answerOf, begun, GOOD, models, standing, startRouting, UNREACHABLE } from './routing-scenarios.ts';

const routing = startRouting();

describe.each([
  ['streamed', true],
  ['whole', false],
] as const)('R4 %s', (_, stream) => {
  let expected: string;
  beforeAll(async () => {
    // A new isolate without recorded failures.
    await routing().gateway.set({ ...routing().vars, HEARTBEAT_SECONDS: stream ? '100' : '200' });
    const { text } = await routing().ask(chat(GOOD, { stream }));
    expected = answerOf(text).content;
  });

  test.each(models)(
    '%s: the next target sends one complete response; one record has both attempts',
    async (model) => {
      const { response, text, upstreams } = await routing().ask(chat(`first ${model}`, { stream }));
      expect(response.status).toBe(200);
      expect(answerOf(text)).toEqual({ content: expected, finishes: ['stop'] });
      expect(text).not.toContain('"error"');
      expect(text).toContain(`"model":"${GOOD}"`);
      if (stream) expect(framesOf(text).at(-1)).toBe(DONE);
      expect(text.match(/"role":"assistant"/g)).toHaveLength(1);
      expect(response.headers.get('x-weir-provider')).toBe('mistral');
      expect(response.headers.get('x-weir-attempts')).toMatch(
        /^\S+ \w+ \d+ms, mistral\/mistral-small-latest 200 \d+ms$/,
      );
      const record = await routing().recordOf(response);
      expect(record).toMatchObject({ status: 'finished', provider: 'mistral', asked: `first ${model}` });
      expect(objectsOf(record.attempts)).toHaveLength(2);
      expect(upstreams).toHaveLength(model === UNREACHABLE ? 1 : 2);
      // R9: the attempts that were given up are cancelled.
      await Promise.all(upstreams.map(({ closed }) => closed));
    },
  );
});

describe('R5 after a heartbeat', () => {
  beforeAll(() => routing().gateway.set({ ...routing().vars, HEARTBEAT_SECONDS: '0.2' }));
  afterAll(() => routing().gateway.set(routing().vars));

  test.each(models)('%s: the 200 is sent, and another target can still be tried', async (model) => {
    const { response, text, upstreams } = await routing().ask(streamedChat(`late ${model}`));
    expect(text.startsWith(': heartbeat\n\n')).toBe(true);
    expect(response.headers.get('x-weir-attempts')).toBeNull();
    expect(response.headers.get('x-weir-model')).toBeNull();
    expect(finishesOf(text)).toEqual(['stop']);
    expect(text).not.toContain('"error"');
    expect(new Set(text.match(/"model":"[^"]+"/g))).toEqual(new Set([`"model":"${GOOD}"`]));
    const record = await routing().recordOf(response);
    expect(objectsOf(record.attempts).map(({ provider }) => provider)).toEqual([
      'xerotier',
      model.split('/')[0],
      'mistral',
    ]);
    await Promise.all(upstreams.map(({ closed }) => closed));
  });
});

const PASSES_VENDOR = { headers: { 'x-weir-vendor-events': 'pass' } };

/** The providers of the targets that were tried. */
const attemptsOf = (record: JsonObject) => objectsOf(record.attempts).map(({ provider }) => provider);

describe.each([
  ['streamed', true],
  ['whole', false],
] as const)('R4 R5 %s: results without fallback', (_, stream) => {
  beforeAll(() => routing().gateway.set({ ...routing().vars, HEARTBEAT_SECONDS: stream ? '300' : '400' }));
  afterAll(() => routing().gateway.set(routing().vars));

  test.each(standing)('%s: it is final, and no other target is tried', async (model) => {
    const { response, text, upstreams } = await routing().ask(chat(`first ${model}`, { stream }));
    const isWhole = model.endsWith('no-text');
    expect(response.status).toBe(isWhole ? 200 : Number(/\b4(?!03)\d\d\b/.exec(model)?.[0] ?? 400));
    if (isWhole) expect(answerOf(text)).toEqual({ content: '', finishes: ['stop'] });
    else expect(text).not.toContain('asked');
    expect(response.headers.get('x-weir-attempts')).toBeNull();
    expect(upstreams).toHaveLength(1);
    expect(attemptsOf(await routing().recordOf(response))).toEqual(['openai']);
    await upstreams[0]?.closed;
  });

  // Vendor events are only output of streams.
  const outputs = stream ? begun : begun.filter((model) => !/vendor|held/.test(model));
  test.each(outputs)('%s: the error ends the response, and no other target is tried', async (model) => {
    const { response, text, upstreams } = await routing().ask(
      chat(`first ${model}`, { stream }),
      PASSES_VENDOR,
    );
    expect(response.status).toBe(stream ? 200 : 502);
    expect(text.match(/"error":/g)).toHaveLength(1);
    if (stream) expect(framesOf(text).at(-1)).toBe(DONE);
    expect(upstreams).toHaveLength(1);
    const record = await routing().recordOf(response);
    expect(record).toMatchObject({ status: 'failed', provider: 'openai' });
    expect(attemptsOf(record)).toEqual(['openai']);
    await upstreams[0]?.closed;
  });
});

describe('R4 R5 after a heartbeat: failures after which no other target is tried', () => {
  beforeAll(() => routing().gateway.set({ ...routing().vars, HEARTBEAT_SECONDS: '0.2' }));
  afterAll(() => routing().gateway.set(routing().vars));

  test.each([...standing, ...begun])(
    '%s: it ends the stream, and no other target is tried',
    async (model) => {
      const { response, text, upstreams } = await routing().ask(streamedChat(`late ${model}`), PASSES_VENDOR);
      expect(text.startsWith(': heartbeat\n\n')).toBe(true);
      const isWhole = model.endsWith('no-text');
      expect(text.match(/"error":/g) ?? []).toHaveLength(isWhole ? 0 : 1);
      expect(framesOf(text).at(-1)).toBe(DONE);
      expect(text).not.toContain('mistral');
      const record = await routing().recordOf(response);
      expect(record.status).toBe(isWhole ? 'finished' : 'failed');
      expect(attemptsOf(record)).toEqual(['xerotier', 'openai']);
      await Promise.all(upstreams.map(({ closed }) => closed));
    },
  );
});
