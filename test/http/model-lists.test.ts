/** Tests for how long a provider's list of models is remembered, and for whom (finding 8). */
import { describe, expect, test } from 'vitest';
import { ModelLists } from '../../src/http/model-lists.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { Memory } from '../../src/stream/memory.ts';
import { FakeClock } from '../stream/fake-clock.ts';

/** Lists are small: there is always room for one. */
const leaseMemory = (bytes: number) => new Memory(new FakeClock()).lease(bytes, () => {});

function setUp() {
  const read = readSettings({ AUTH: 'open', OPENAI_API_KEY: 'k' });
  const openai = read.kind === 'valid' ? read.settings.providers.get('openai') : undefined;
  if (openai === undefined) throw new Error('OpenAI is not set up');
  const clock = new FakeClock();
  const asked: unknown[] = [];
  const upstream = { status: 200 };
  const lists = new ModelLists({
    clock,
    fetch: async (_, init) => {
      asked.push(new Headers(init?.headers).get('authorization'));
      return new Response('{"data":[{"id":"gpt-4o-mini"}]}', upstream);
    },
  });
  return { lists, openai, clock, asked, upstream };
}

describe('finding 8: ModelLists', () => {
  test('a list: is asked for once in a minute, and then again', async () => {
    const { lists, openai, clock, asked } = setUp();
    const first = await lists.list(openai, null, leaseMemory);
    expect(first).toEqual([{ id: 'openai/gpt-4o-mini', object: 'model', created: 0, owned_by: 'openai' }]);
    clock.advance(59_999);
    expect(await lists.list(openai, null, leaseMemory)).toEqual(first);
    expect(asked).toEqual(['Bearer k']);
    clock.advance(1);
    await lists.list(openai, null, leaseMemory);
    expect(asked).toEqual(['Bearer k', 'Bearer k']);
  });

  test('a failure: is asked for again after ten seconds', async () => {
    const { lists, openai, clock, asked, upstream } = setUp();
    upstream.status = 500;
    expect(await lists.list(openai, null, leaseMemory)).toBeNull();
    upstream.status = 200;
    clock.advance(9_999);
    expect(await lists.list(openai, null, leaseMemory)).toBeNull();
    expect(asked).toHaveLength(1);
    clock.advance(1);
    expect(await lists.list(openai, null, leaseMemory)).toHaveLength(1);
  });

  test("a caller's own list: is asked for with the caller's credential each time, and shown to nobody else", async () => {
    const { lists, openai, asked, upstream } = setUp();
    expect(await lists.list(openai, 'own', leaseMemory)).toHaveLength(1);
    expect(await lists.list(openai, 'own', leaseMemory)).toHaveLength(1);
    upstream.status = 500;
    expect(await lists.list(openai, null, leaseMemory)).toBeNull();
    upstream.status = 200;
    expect(await lists.list(openai, 'own', leaseMemory)).toHaveLength(1);
    expect(asked).toEqual(['Bearer own', 'Bearer own', 'Bearer k', 'Bearer own']);
  });
});
