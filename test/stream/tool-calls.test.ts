/** Tests the repair of tool calls (C7): which call a fragment belongs to, and the fields of its first fragment. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ToolCallDelta } from '../../src/canonical/chunk.ts';
import type { ToolCallPart } from '../../src/canonical/part.ts';
import { MAX_TOOL_CALLS } from '../../src/shared/limits.ts';
import { MAX_NAMELESS_CHARS, ToolCallRepair } from '../../src/stream/tool-calls.ts';

type Fragment = Partial<ToolCallPart>;

function part({ index, id, name, arguments: args = '', extraContent }: Fragment): ToolCallPart {
  return { index, id, name, arguments: args, extraContent };
}

function repair(): ToolCallRepair {
  let made = 0;
  return new ToolCallRepair(() => `made${++made}`, { calls: 0, waitingChars: 0, revision: 0 });
}

/** The output for each fragment; generated ids are `made1`, `made2`. Null: nothing. A list: of several calls. */
function readAll(...fragments: Fragment[]): (ToolCallDelta | null | readonly ToolCallDelta[])[] {
  const calls = repair();
  return fragments.map((fragment) => {
    const read = calls.read(part(fragment));
    return read.length > 1 ? read : (read[0] ?? null);
  });
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

  test('C7 A3 indexes that begin at another number, have gaps or go down: calls count from 0 as they come', () => {
    const fragments = [
      { index: 3, id: 'a', name: 'f' },
      { index: 3, arguments: '1' },
      { index: 7, id: 'b', name: 'g' },
      { index: 1, id: 'c', name: 'h' },
      { index: 7, arguments: '2' },
      { index: MAX_TOOL_CALLS * 9, id: 'd', name: 'i', arguments: '3' },
      { index: 3, arguments: '4' },
    ];
    expect(readAll(...fragments)).toEqual([
      first(0, 'a', 'f'),
      later(0, '1'),
      first(1, 'b', 'g'),
      first(2, 'c', 'h'),
      later(1, '2'),
      first(3, 'd', 'i', '3'),
      later(0, '4'),
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
      first(0, 'a', 'f'),
      first(1, 'b', 'g'),
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
    const calls = repair();
    expect(calls.isEmpty).toBe(true);
    expect(calls.read(part({ index: 0 }))).toEqual([]);
    expect([calls.isEmpty, calls.isNameless]).toEqual([true, false]);
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

describe('ToolCallRepair.read, arguments before the name of their tool', () => {
  test('C7 the arguments wait, and are sent with the name', () => {
    const fragments = [
      { index: 0, id: 'a', arguments: '{"p":' },
      { index: 0, arguments: '1' },
      { index: 0, name: 'f' },
      { index: 0, arguments: '}' },
    ];
    expect(readAll(...fragments)).toEqual([null, null, first(0, 'a', 'f', '{"p":1'), later(0, '}')]);
  });

  test('C7 neither index nor id: the same', () => {
    expect(readAll({ arguments: '{"p":' }, { name: 'f', arguments: '1' }, { arguments: '}' })).toEqual([
      null,
      first(0, 'made1', 'f', '{"p":1'),
      later(0, '}'),
    ]);
  });

  test('C7 the calls behind it wait for its name, and keep their order', () => {
    const fragments = [
      { index: 0, id: 'a', arguments: '{"p"' },
      { index: 1, id: 'b', name: 'g', arguments: '{"q"' },
      { index: 1, arguments: ':2}' },
      { index: 0, name: 'f', arguments: ':1}' },
      { index: 2, id: 'c', name: 'h' },
    ];
    expect(readAll(...fragments)).toEqual([
      null,
      null,
      null,
      [first(0, 'a', 'f', '{"p":1}'), first(1, 'b', 'g', '{"q":2}')],
      first(2, 'c', 'h'),
    ]);
  });

  test.each(['{}', ' { }', 'null'])(
    'C7 a placeholder, %j, before the name: other arguments replace it',
    (text) => {
      expect(readAll({ index: 0, arguments: text }, { index: 0, name: 'f', arguments: '{"p":1}' })).toEqual([
        null,
        first(0, 'made1', 'f', '{"p":1}'),
      ]);
    },
  );

  test('C7 what may be a placeholder comes with the name: it waits for what follows, as one behind the name does', () => {
    const calls = repair();
    calls.read(part({ index: 0, id: 'a', arguments: '{}' }));
    expect(calls.read(part({ index: 0, name: 'f' }))).toEqual([first(0, 'a', 'f', '{}')]);
    expect(calls.isHolding).toBe(true);
    const next = part({ index: 0, arguments: '{"p":1}' });
    expect(calls.decidePlaceholders([next])).toEqual(new Set([0]));
    expect(calls.read(next)).toEqual([later(0, '{"p":1}')]);
    expect([calls.isCut, calls.isBroken]).toEqual([false, false]);
  });

  test('C7 isNameless while a call has something but no name', () => {
    for (const fragment of [{ id: 'a' }, { arguments: '{}' }]) {
      const calls = repair();
      calls.read(part(fragment));
      expect(calls.isNameless).toBe(true);
      calls.read(part({ name: 'f' }));
      expect(calls.isNameless).toBe(false);
    }
  });

  test.each([
    ['in the middle of another call', ['": 1', '{"a":1}']],
    ['all of another call', ['{"a":1}', '{"b":2}']],
    ['the end only', ['":1}']],
  ])(
    'C7 isBroken where arguments before the name and those behind it are not one object: %s',
    (_, [early = '', ...rest]) => {
      const calls = repair();
      calls.read(part({ index: 0, arguments: early }));
      calls.read(part({ index: 0, id: 'a', name: 'f' }));
      for (const text of rest) calls.read(part({ index: 0, arguments: text }));
      expect(calls.isBroken).toBe(true);
    },
  );

  test('C7 startWaiting sends the calls that waited for the name of a call that was cut', () => {
    const calls = repair();
    calls.read(part({ index: 0, arguments: '{"p"' }));
    calls.read(part({ index: 1, id: 'b', name: 'g', arguments: '{}' }));
    expect(calls.startWaiting()).toEqual([first(0, 'b', 'g', '{}')]);
    expect(calls.isNameless).toBe(false);
  });

  test('C7 the input of a custom tool waits, too', () => {
    const calls = repair();
    expect(calls.read({ ...part({ index: 0, id: 'a', arguments: 'one "' }), isCustom: true })).toEqual([]);
    const named = { ...part({ index: 0, name: 'f', arguments: 'two' }), isCustom: true as const };
    expect(calls.read(named)).toEqual([
      { ...first(0, 'a', 'f', '{"input":"one \\"two'), custom: { name: 'f', input: 'one "two' } },
    ]);
  });
});

describe('ToolCallRepair, its bounds', () => {
  test('B1 excess: null at the bound and for its later fragments; one call more is dropped', () => {
    const calls = repair();
    for (let index = 0; index < MAX_TOOL_CALLS; index++) calls.read(part({ index, name: 'f' }));
    expect(calls.read(part({ index: MAX_TOOL_CALLS - 1, arguments: '{}' }))).toHaveLength(1);
    expect(calls.excess).toBeNull();
    expect(calls.read(part({ index: MAX_TOOL_CALLS, name: 'f' }))).toEqual([]);
    expect(calls.excess).toBe(`${MAX_TOOL_CALLS} tool calls`);
  });

  test('B1 excess: arguments of all calls before their names, one character above the bound', () => {
    const calls = repair();
    calls.read(part({ index: 0, arguments: 'x'.repeat(MAX_NAMELESS_CHARS - 2) }));
    calls.read(part({ index: 1, arguments: 'xx' }));
    expect(calls.excess).toBeNull();
    calls.read(part({ index: 0, arguments: 'x' }));
    expect(calls.excess).toBe(`${MAX_NAMELESS_CHARS} characters of arguments before the name of their tool`);
  });

  test('B1 excess: null for longer arguments with their name, and once the name has come', () => {
    const calls = repair();
    calls.read(part({ index: 0, name: 'f', arguments: 'x'.repeat(MAX_NAMELESS_CHARS + 1) }));
    for (let index = 1; index < 4; index++) {
      calls.read(part({ index, arguments: 'x'.repeat(MAX_NAMELESS_CHARS) }));
      calls.read(part({ index, name: 'f' }));
    }
    expect(calls.excess).toBeNull();
  });
});

const anyFragment: fc.Arbitrary<Fragment> = fc.record({
  index: fc.option(fc.nat(3), { nil: undefined }),
  id: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }),
  name: fc.option(fc.constantFrom('f', 'g'), { nil: undefined, freq: 6 }),
  arguments: fc.constantFrom('', '1', '2', '[]'),
});

test('C7 A3 any fragments: each index is announced once, in order, before its later ones; arguments are lost only of nameless calls', () => {
  let complete = 0;
  fc.assert(
    fc.property(fc.array(anyFragment, { maxLength: 20 }), (fragments) => {
      const calls = repair();
      const read: Fragment[] = [];
      const deltas = fragments.flatMap((fragment) => {
        if (!calls.isRepeated(part(fragment))) read.push(fragment);
        return calls.read(part(fragment));
      });
      let announced = 0;
      for (const fragment of deltas) {
        if ('id' in fragment) expect(fragment.index).toBe(announced++);
        else expect(fragment.index).toBeLessThan(announced);
      }
      const ids = deltas.flatMap((fragment) => ('id' in fragment ? [fragment.id] : []));
      expect(new Set(ids).size).toBe(ids.length);
      if (calls.isNameless) return;
      complete++;
      const args = (list: readonly { arguments?: string }[]) =>
        [...list.map((one) => one.arguments ?? '').join('')].sort().join('');
      expect(args(deltas.map((fragment) => fragment.function))).toBe(args(read));
    }),
    { numRuns: 500, seed: 20261121 },
  );
  expect(complete).toBeGreaterThan(100);
});
