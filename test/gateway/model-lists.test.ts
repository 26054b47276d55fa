/** Tests for how long a provider's list of models is remembered, and for whom (finding 8). */
import { describe, expect, test } from 'vitest';
import { ModelLists } from '../../src/api/model-lists.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { Memory } from '../../src/stream/memory.ts';
import { FakeClock } from '../stream/fake-clock.ts';

/** Lists are small: there is always room for one. */
const leaseMemory = (bytes: number) => new Memory(new FakeClock()).lease(bytes, () => {});

function setUp() {
  const read = readSettings({ AUTH: 'open', OPENAI_API_KEY: 'k' });
  const found = read.kind === 'valid' ? read.settings.providers.get('openai') : undefined;
  if (found === undefined) throw new Error('OpenAI is not set up');
  const openai = found;
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
  /** The models; null where they could not be listed. */
  async function list(credential: string | null) {
    const answer = await lists.list(openai, credential, leaseMemory);
    return answer.kind === 'models' ? answer.models : null;
  }
  return { list, clock, asked, upstream };
}

describe('finding 8: ModelLists', () => {
  test('a list: is asked for once in a minute, and then again', async () => {
    const { list, clock, asked } = setUp();
    const first = await list(null);
    expect(first).toEqual([{ id: 'openai/gpt-4o-mini', object: 'model', created: 0, owned_by: 'openai' }]);
    clock.advance(59_999);
    expect(await list(null)).toEqual(first);
    expect(asked).toEqual(['Bearer k']);
    clock.advance(1);
    await list(null);
    expect(asked).toEqual(['Bearer k', 'Bearer k']);
  });

  test('a failure: is asked for again after ten seconds', async () => {
    const { list, clock, asked, upstream } = setUp();
    upstream.status = 500;
    expect(await list(null)).toBeNull();
    upstream.status = 200;
    clock.advance(9_999);
    expect(await list(null)).toBeNull();
    expect(asked).toHaveLength(1);
    clock.advance(1);
    expect(await list(null)).toHaveLength(1);
  });

  test("a caller's own list: is asked for with the caller's credential each time, and shown to nobody else", async () => {
    const { list, asked, upstream } = setUp();
    expect(await list('own')).toHaveLength(1);
    expect(await list('own')).toHaveLength(1);
    upstream.status = 500;
    expect(await list(null)).toBeNull();
    upstream.status = 200;
    expect(await list('own')).toHaveLength(1);
    expect(asked).toEqual(['Bearer own', 'Bearer own', 'Bearer k', 'Bearer own']);
  });
});
