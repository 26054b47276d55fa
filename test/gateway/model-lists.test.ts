/** Tests how long a provider's list of models is cached, and for whom. */
import { describe, expect, test } from 'vitest';
import { ModelLists } from '../../src/api/model-lists.ts';
import { Memory } from '../../src/stream/memory.ts';
import { readSettings } from '../settings/read-settings.ts';
import { FakeClock } from '../stream/fake-clock.ts';

/** Model lists are small, so there is always memory for one. */
const takeMemory = (bytes: number) => new Memory(new FakeClock()).grant(bytes, () => {});

function setUp() {
  const read = readSettings({ AUTH: 'open', OPENAI_API_KEY: 'k' });
  const found = read.kind === 'valid' ? read.settings.providers.get('openai') : undefined;
  if (found === undefined) throw new Error('OpenAI is not set up');
  const openai = found;
  const clock = new FakeClock();
  const sentKeys: unknown[] = [];
  const upstream = { status: 200 };
  const lists = new ModelLists({
    clock,
    fetch: async (_, init) => {
      sentKeys.push(new Headers(init?.headers).get('authorization'));
      return new Response('{"data":[{"id":"gpt-unknown"}]}', upstream);
    },
  });
  /** The models; null if the provider failed. */
  async function list(credential: string | null) {
    const result = await lists.list(openai, credential, takeMemory);
    return result.kind === 'ok' ? result.value : null;
  }
  return { list, clock, sentKeys, upstream };
}

describe('ModelLists', () => {
  test('a list is fetched once a minute', async () => {
    const { list, clock, sentKeys } = setUp();
    const first = await list(null);
    expect(first).toEqual([{ id: 'openai/gpt-unknown', object: 'model', created: 0, owned_by: 'openai' }]);
    clock.advance(59_999);
    expect(await list(null)).toEqual(first);
    expect(sentKeys).toEqual(['Bearer k']);
    clock.advance(1);
    await list(null);
    expect(sentKeys).toEqual(['Bearer k', 'Bearer k']);
  });

  test('after a failure the list is fetched again after ten seconds', async () => {
    const { list, clock, sentKeys, upstream } = setUp();
    upstream.status = 500;
    expect(await list(null)).toBeNull();
    upstream.status = 200;
    clock.advance(9_999);
    expect(await list(null)).toBeNull();
    expect(sentKeys).toHaveLength(1);
    clock.advance(1);
    expect(await list(null)).toHaveLength(1);
  });

  test("a list for a caller's own key is fetched with that key each time, and shown to no other caller", async () => {
    const { list, sentKeys, upstream } = setUp();
    expect(await list('own')).toHaveLength(1);
    expect(await list('own')).toHaveLength(1);
    upstream.status = 500;
    expect(await list(null)).toBeNull();
    upstream.status = 200;
    expect(await list('own')).toHaveLength(1);
    expect(sentKeys).toEqual(['Bearer own', 'Bearer own', 'Bearer k', 'Bearer own']);
  });
});
