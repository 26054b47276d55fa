/** Tests the repair of tool calls (C7): which call a fragment belongs to, and the fields of its first fragment. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ToolCallDelta } from '../../src/canonical/chunk.ts';
import type { ToolCallPart } from '../../src/canonical/part.ts';
import { MAX_TOOL_CALLS } from '../../src/shared/limits.ts';
import { ToolCallRepair } from '../../src/stream/tool-calls.ts';

type Fragment = Partial<ToolCallPart>;

function part({ index, id, name, arguments: args = '', extraContent }: Fragment): ToolCallPart {
  return { index, id, name, arguments: args, extraContent };
}

/** The output for each fragment; generated ids are `made1`, `made2`. */
function readAll(...fragments: Fragment[]): (ToolCallDelta | null)[] {
  let made = 0;
  const calls = new ToolCallRepair(() => `made${++made}`, { calls: 0, revision: 0 });
  return fragments.map((fragment) => calls.read(part(fragment)));
}

const first = (index: number, id: string, name: string, args = ''): ToolCallDelta => ({
  index,
  id,
  type: 'function',
  function: { name, arguments: args },
});
const later = (index: number, args: string): ToolCallDelta => ({ index, function: { arguments: args } });

describe('ToolCallRepair.read, with an index from the upstream', () => {
  test('C7 fragments of one call: id, type and name only on the first', () => {
    const fragments = [
      { index: 0, id: 'a', name: 'f' },
      { index: 0, arguments: '{"b"' },
      { index: 0, arguments: ':1}' },
    ];
    expect(readAll(...fragments)).toEqual([first(0, 'a', 'f'), later(0, '{"b"'), later(0, ':1}')]);
  });

  test('C7 id and name repeated on every fragment: sent once', () => {
    const fragment = { index: 0, id: 'a', name: 'f' };
    expect(readAll({ ...fragment, arguments: '1' }, { ...fragment, arguments: '2' })).toEqual([
      first(0, 'a', 'f', '1'),
      later(0, '2'),
    ]);
  });

  test('C7 parallel calls whose fragments mix: each goes to its index', () => {
    const fragments = [
      { index: 0, id: 'a', name: 'f' },
      { index: 1, id: 'b', name: 'g' },
      { index: 0, arguments: '1' },
      { index: 1, arguments: '2' },
    ];
    expect(readAll(...fragments)).toEqual([
      first(0, 'a', 'f'),
      first(1, 'b', 'g'),
      later(0, '1'),
      later(1, '2'),
    ]);
  });

  test('C7 an index that does not begin at 0: kept', () => {
    expect(readAll({ index: 3, id: 'a', name: 'f' }, { index: 3, arguments: '1' })).toEqual([
      first(3, 'a', 'f'),
      later(3, '1'),
    ]);
  });

  test('C7 one index for every call, without ids: a name with further arguments starts a call where those before are complete', () => {
    const fragments = [
      { index: 0, name: 'f', arguments: '{"a":1}' },
      { index: 0, name: 'g', arguments: '{"b"' },
      { index: 0, name: 'g', arguments: ':2}' },
      { index: 0, name: 'f', arguments: '{}' },
    ];
    expect(readAll(...fragments)).toEqual([
      first(0, 'made1', 'f', '{"a":1}'),
      first(1, 'made2', 'g', '{"b"'),
      later(1, ':2}'),
      first(2, 'made3', 'f', '{}'),
    ]);
  });

  test('C7 a name that is repeated behind complete arguments without others: the same call', () => {
    const fragments = [
      { index: 0, name: 'f', arguments: '{"a":1}' },
      { index: 0, name: 'f', arguments: '' },
      { index: 0, name: 'f', arguments: '\n' },
    ];
    expect(readAll(...fragments)).toEqual([first(0, 'made1', 'f', '{"a":1}'), null, later(0, '\n')]);
  });

  test('C7 two calls with one id: the second gets an id of its own', () => {
    const fragments = [
      { index: 0, id: 'a', name: 'f', arguments: '{}' },
      { index: 1, id: 'a', name: 'g', arguments: '{"b"' },
      { index: 1, arguments: ':2}' },
    ];
    expect(readAll(...fragments)).toEqual([
      first(0, 'a', 'f', '{}'),
      first(1, 'made1', 'g', '{"b"'),
      later(1, ':2}'),
    ]);
  });

  test('C7 one index for every call, with a new id and a name: separate calls', () => {
    const fragments = [
      { index: 0, id: 'a', name: 'f', arguments: '1' },
      { index: 0, id: 'b', name: 'g', arguments: '2' },
      { index: 0, arguments: '3' },
      { index: 0, id: 'a', arguments: '4' },
    ];
    expect(readAll(...fragments)).toEqual([
      first(0, 'a', 'f', '1'),
      first(1, 'b', 'g', '2'),
      later(1, '3'),
      later(0, '4'),
    ]);
  });

  test('C7 a new call at a used index: gets the next free one, even after later calls', () => {
    const fragments = [
      { index: 0, id: 'a', name: 'f' },
      { index: 1, id: 'b', name: 'f' },
      { index: 0, id: 'c', name: 'f' },
      { index: 1, arguments: '1' },
    ];
    expect(readAll(...fragments)).toEqual([
      first(0, 'a', 'f'),
      first(1, 'b', 'f'),
      first(2, 'c', 'f'),
      later(1, '1'),
    ]);
  });

  test('C7 another id on a fragment without a name: continues the same call', () => {
    expect(readAll({ index: 0, id: 'a', name: 'f' }, { index: 0, id: 'other', arguments: '1' })).toEqual([
      first(0, 'a', 'f'),
      later(0, '1'),
    ]);
  });

  test('C7 no id at the first fragment: one is generated, and a later one of the upstream is not sent', () => {
    expect(
      readAll({ index: 0, name: 'f' }, { index: 0, id: 'late', arguments: '1' }, { index: 1, name: 'g' }),
    ).toEqual([first(0, 'made1', 'f'), later(0, '1'), first(1, 'made2', 'g')]);
  });
});

describe('ToolCallRepair.read, without an index from the upstream', () => {
  test('C7 a known id: continues its call', () => {
    const fragments = [
      { id: 'a', name: 'f' },
      { id: 'b', name: 'g' },
      { id: 'a', arguments: '1' },
    ];
    expect(readAll(...fragments)).toEqual([first(0, 'a', 'f'), first(1, 'b', 'g'), later(0, '1')]);
  });

  test('C7 a new id: the next index', () => {
    expect(readAll({ index: 4, id: 'a', name: 'f' }, { id: 'b', name: 'g' })).toEqual([
      first(4, 'a', 'f'),
      first(5, 'b', 'g'),
    ]);
  });

  test('C7 no id and no name: continues the last call', () => {
    const fragments = [{ id: 'a', name: 'f' }, { id: 'b', name: 'g' }, { arguments: '1' }];
    expect(readAll(...fragments)).toEqual([first(0, 'a', 'f'), first(1, 'b', 'g'), later(1, '1')]);
  });

  test('C7 no id, but a name, and the last call has a name: a new call', () => {
    expect(readAll({ name: 'f', arguments: '1' }, { name: 'g' }, { arguments: '2' })).toEqual([
      first(0, 'made1', 'f', '1'),
      first(1, 'made2', 'g'),
      later(1, '2'),
    ]);
  });

  test('C7 no id at all, from the first fragment on: one call with a generated id', () => {
    expect(readAll({ name: 'f' }, { arguments: '{' }, { arguments: '}' })).toEqual([
      first(0, 'made1', 'f'),
      later(0, '{'),
      later(0, '}'),
    ]);
  });
});

describe('ToolCallRepair.read, incomplete and empty fragments', () => {
  test('C7 a later fragment with empty arguments: dropped', () => {
    expect(readAll({ index: 0, id: 'a', name: 'f' }, { index: 0 }, { index: 0, id: 'a', name: 'f' })).toEqual(
      [first(0, 'a', 'f'), null, null],
    );
  });

  test('C7 an id before its name: held and sent with it', () => {
    expect(readAll({ index: 0, id: 'a' }, { index: 0, name: 'f' })).toEqual([null, first(0, 'a', 'f')]);
  });

  test("C7 an index before its id and name: held, and the upstream's id and name are sent", () => {
    expect(readAll({ index: 0 }, { index: 0, id: 'a', name: 'f' })).toEqual([null, first(0, 'a', 'f')]);
  });

  test('C7 a complete call in one fragment: unchanged', () => {
    expect(readAll({ id: 'a', name: 'f', arguments: '{"b":1}' })).toEqual([first(0, 'a', 'f', '{"b":1}')]);
  });

  test('C8 isEmpty after a fragment without id, name and arguments: there is no call yet', () => {
    const calls = new ToolCallRepair(() => 'made', { calls: 0, revision: 0 });
    expect(calls.isEmpty).toBe(true);
    expect(calls.read(part({ index: 0 }))).toBeNull();
    expect(calls.isEmpty).toBe(true);
    calls.read(part({ index: 0, name: 'f' }));
    expect(calls.isEmpty).toBe(false);
  });
});

describe('ToolCallRepair.read, what the upstream wants back with a call', () => {
  const one = { google: { thought_signature: 'one' } };
  const two = { google: { thought_signature: 'two' } };

  test('A7 on a first fragment: its last key, and on no later fragment', () => {
    const fragments = readAll(
      { index: 0, id: 'a', name: 'f', extraContent: one },
      { index: 0, arguments: '{}' },
    );
    expect(fragments).toEqual([{ ...first(0, 'a', 'f'), extra_content: one }, later(0, '{}')]);
    expect(Object.keys(fragments[0] ?? {})).toEqual(['index', 'id', 'type', 'function', 'extra_content']);
  });

  test('A7 before the name: held, and sent on the first fragment', () => {
    expect(
      readAll({ index: 0, id: 'a', extraContent: one }, { index: 0, name: 'f', extraContent: two }),
    ).toEqual([null, { ...first(0, 'a', 'f'), extra_content: one }]);
  });

  test('A7 after the first fragment, with or without arguments: sent in a fragment, as its last key', () => {
    const fragments = readAll(
      { id: 'a', name: 'f', arguments: '{}' },
      { extraContent: one },
      { arguments: ' ', extraContent: two },
    );
    expect(fragments.slice(1)).toEqual([
      { ...later(0, ''), extra_content: one },
      { ...later(0, ' '), extra_content: two },
    ]);
    expect(Object.keys(fragments[1] ?? {})).toEqual(['index', 'function', 'extra_content']);
  });

  test('A7 of one of two parallel calls: only on that call', () => {
    const fragments = [
      { id: 'a', name: 'f', arguments: '1', extraContent: one },
      { id: 'b', name: 'g', arguments: '2' },
    ];
    expect(readAll(...fragments)).toEqual([
      { ...first(0, 'a', 'f', '1'), extra_content: one },
      first(1, 'b', 'g', '2'),
    ]);
  });
});

describe('ToolCallRepair, its bound', () => {
  test('B1 isOverBound: false at the bound and for its later fragments, true for one call more, which is dropped', () => {
    const calls = new ToolCallRepair(() => 'made', { calls: 0, revision: 0 });
    for (let index = 0; index < MAX_TOOL_CALLS; index++) calls.read(part({ index, name: 'f' }));
    expect(calls.read(part({ index: MAX_TOOL_CALLS - 1, arguments: '{}' }))).not.toBeNull();
    expect(calls.isOverBound).toBe(false);
    expect(calls.read(part({ index: MAX_TOOL_CALLS, name: 'f' }))).toBeNull();
    expect(calls.isOverBound).toBe(true);
  });
});

const anyFragment: fc.Arbitrary<Fragment> = fc.record({
  index: fc.option(fc.nat(3), { nil: undefined }),
  id: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }),
  name: fc.option(fc.constantFrom('f', 'g'), { nil: undefined }),
  arguments: fc.constantFrom('', '1', '{}'),
});

test('C7 any fragments: each index is announced once, before its later ones, and no argument is lost', () => {
  fc.assert(
    fc.property(fc.array(anyFragment, { maxLength: 20 }), (fragments) => {
      const deltas = readAll(...fragments).filter((fragment) => fragment !== null);
      const announced = new Set<number>();
      for (const fragment of deltas) {
        expect('id' in fragment).toBe(!announced.has(fragment.index));
        announced.add(fragment.index);
      }
      const ids = deltas.flatMap((fragment) =>
        'id' in fragment && fragment.id.startsWith('made') ? [fragment.id] : [],
      );
      expect(new Set(ids).size).toBe(ids.length);
      const args = (list: readonly { arguments?: string }[]) =>
        list.map((one) => one.arguments ?? '').join('');
      expect(args(deltas.map((fragment) => fragment.function))).toBe(args(fragments));
    }),
    { numRuns: 500, seed: 20261121 },
  );
});
