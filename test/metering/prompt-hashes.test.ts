/** Tests the keyed hashes of prompts: what changes which of them, in the bodies of each provider protocol. */
import { describe, expect, test } from 'vitest';
import {
  conversationField,
  decodePrefix,
  encodePrefix,
  MAX_BEGINNINGS,
  MAX_ENDS,
  PromptHasher,
  type PromptPrefix,
} from '../../src/metering/prompt-hashes.ts';
import type { JsonObject } from '../../src/shared/json.ts';

// Node 24 does not have it yet.
Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

const SECRET = 'a secret of the deployment';
const hasher = new PromptHasher(SECRET);

const prefixOf = (body: JsonObject, target = 'p m', clientBody = body) =>
  hasher.prefix({ body, target, itemTexts: null }, clientBody);
const beginningsOf = (body: JsonObject, target = 'p m', headers = '') =>
  hasher.beginnings({ body, target, itemTexts: null }, headers);

const LONG = 'The lock keeper writes down each boat. '.repeat(400);

/** A session of so many steps in each protocol, whose later requests continue the earlier ones. */
const PROTOCOLS: Readonly<Record<string, (steps: number) => JsonObject>> = {
  chat: (steps) => ({
    model: 'm',
    tools: [{ type: 'function', function: { name: 'read' } }],
    messages: [
      { role: 'system', content: 'You keep a lock.' },
      { role: 'user', content: 'Open the gate' },
      ...stepsOf(steps, (i) => [
        { role: 'assistant', content: '', tool_calls: [{ id: `c${i}` }] },
        { role: 'tool', tool_call_id: `c${i}`, content: i === 2 ? LONG : `result ${i}` },
      ]),
    ],
  }),
  messages: (steps) => ({
    model: 'm',
    tools: [{ name: 'read' }],
    system: [{ type: 'text', text: 'You keep a lock.' }],
    messages: [
      { role: 'user', content: 'Open the gate' },
      ...stepsOf(steps, (i) => [
        { role: 'assistant', content: [{ type: 'tool_use', id: `c${i}` }] },
        { role: 'user', content: [{ type: 'tool_result', content: i === 2 ? LONG : `result ${i}` }] },
      ]),
    ],
  }),
  responses: (steps) => ({
    model: 'm',
    tools: [{ type: 'function', name: 'read' }],
    instructions: 'You keep a lock.',
    input: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Open the gate' }] },
      ...stepsOf(steps, (i) => [
        { type: 'reasoning', summary: [] },
        { type: 'function_call', call_id: `c${i}`, arguments: '{}' },
        { type: 'function_call_output', call_id: `c${i}`, output: i === 2 ? LONG : `result ${i}` },
      ]),
    ],
  }),
  gemini: (steps) => ({
    tools: [{ functionDeclarations: [{ name: 'read' }] }],
    systemInstruction: { parts: [{ text: 'You keep a lock.' }] },
    contents: [
      { role: 'user', parts: [{ text: 'Open the gate' }] },
      ...stepsOf(steps, (i) => [
        { role: 'model', parts: [{ functionCall: { name: 'read' } }] },
        { role: 'user', parts: [{ functionResponse: { text: i === 2 ? LONG : `result ${i}` } }] },
      ]),
    ],
  }),
};

function stepsOf(count: number, step: (i: number) => readonly JsonObject[]): readonly JsonObject[] {
  return Array.from({ length: count }, (_, i) => step(i)).flat();
}

/** The last end of `before` is among those of `after`. */
function continues(before: PromptPrefix, after: PromptPrefix): boolean {
  const at = after.ends.length - 1 - (after.turns - before.turns);
  return after.ends[at] === before.ends.at(-1);
}

describe.each(Object.entries(PROTOCOLS))('a body of %s', (_, session) => {
  test('has a turn for each step, and each step continues the one before', async () => {
    const prefixes = await Promise.all([0, 1, 2, 3, 4].map((steps) => prefixOf(session(steps))));
    expect(prefixes.map(({ turns }) => turns)).toEqual([1, 2, 3, 4, 5]);
    const [first = expect.fail(), ...later] = prefixes;
    for (const [i, prefix] of later.entries()) {
      expect(continues(prefixes[i] ?? first, prefix)).toBe(true);
      expect({ ...prefix, turns: 0, ends: [] }).toEqual({ ...first, turns: 0, ends: [] });
    }
  });

  test('has the same hashes if the texts of its items are known', async () => {
    const body = session(12);
    const mark = { cache_control: { type: 'ephemeral' } };
    for (const change of [(item: JsonObject) => item, (item: JsonObject) => ({ ...item, ...mark })]) {
      const field = conversationField(body) ?? '';
      const items = (body[field] as readonly JsonObject[]).map(change);
      const itemTexts = items.map((item) => JSON.stringify(item));
      const known = { body: { ...body, [field]: items }, target: 'p m', itemTexts };
      expect(await hasher.prefix(known, body)).toEqual(await prefixOf(body));
      expect((await hasher.beginnings(known, '')).map(({ hash }) => hash)).toEqual(
        (await beginningsOf(body)).map(({ hash }) => hash),
      );
    }
  });

  test('changes one hash by one part', async () => {
    const body = session(3);
    const before = await prefixOf(body);
    const changed = async (change: JsonObject) => {
      const after = await prefixOf({ ...body, ...change });
      return Object.keys(before).filter(
        (name) =>
          JSON.stringify(before[name as keyof PromptPrefix]) !==
          JSON.stringify(after[name as keyof PromptPrefix]),
      );
    };
    expect(await changed({ tools: [] })).toEqual(['tools']);
    expect(await changed({ tool_choice: 'none' })).toEqual(['settings']);
    expect(await changed({ instructions: 'Keep it shut.' })).toEqual(['system']);
    expect(await changed({ temperature: 0.5, max_tokens: 5, user: 'ada' })).toEqual([]);
  });

  test('is known to a budget by each beginning, whose bytes are never more than those of the body', async () => {
    const earlier = await beginningsOf(session(2));
    const later = await beginningsOf({ ...session(5), max_tokens: 9, temperature: 1, stream: true });
    expect(later.slice(0, earlier.length)).toEqual(earlier);
    expect(later).toHaveLength(6);
    const bytes = new TextEncoder().encode(JSON.stringify(session(2))).length;
    const last = earlier.at(-1)?.bytes ?? 0;
    expect(last).toBeLessThanOrEqual(bytes);
    expect(last).toBeGreaterThan(bytes - 200);
  });

  test('shares no beginning with another target, other headers or another field', async () => {
    const body = session(2);
    const all = await Promise.all([
      beginningsOf(body),
      beginningsOf(body, 'other'),
      beginningsOf(body, 'p m', 'beta'),
      beginningsOf({ ...body, service_tier: 'flex' }),
      beginningsOf({ ...body, tools: [] }),
      new PromptHasher('another secret').beginnings({ body, target: 'p m', itemTexts: null }, ''),
    ]);
    const hashes = all.flat().map(({ hash }) => hash);
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(hashes.every((hash) => /^[0-9a-f]{16}$/.test(hash))).toBe(true);
  });
});

test('cache marks that move on change no hash, nor does the form of a text', async () => {
  const mark = { cache_control: { type: 'ephemeral' } };
  const step = (marked: boolean) => ({
    system: [{ type: 'text', text: 'You keep a lock.', ...(marked && mark) }],
    tools: [{ name: 'read', ...(marked && mark) }],
    messages: [
      { role: 'user', content: marked ? [{ type: 'text', text: 'Open', ...mark }] : 'Open' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', ...(marked && mark) }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', content: [{ type: 'text', text: 'b', ...(marked && mark) }] }],
      },
    ],
  });
  expect(await prefixOf(step(true))).toEqual(await prefixOf(step(false)));
  expect((await beginningsOf(step(true))).map(({ hash }) => hash)).toEqual(
    (await beginningsOf(step(false))).map(({ hash }) => hash),
  );
});

test('the user messages before the first output are those of the client, for whichever target', async () => {
  const client = { input: 'Open the gate' };
  const one = await prefixOf(PROTOCOLS.chat?.(0) ?? {}, 'a', client);
  const other = await prefixOf(PROTOCOLS.gemini?.(0) ?? {}, 'b', client);
  expect(other.first).toBe(one.first);
  expect(other.target).not.toBe(one.target);
});

test('an earlier message that changes changes the ends from its turn on', async () => {
  const body = PROTOCOLS.messages?.(6) ?? {};
  const messages = [...(body.messages as readonly JsonObject[])];
  messages[8] = { role: 'user', content: 'edited' };
  const [before, after] = await Promise.all([prefixOf(body), prefixOf({ ...body, messages })]);
  expect(after.ends.map((end, i) => end === before.ends[i])).toEqual([
    true,
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
});

test('a long session has the last turns alone, and the same links from its start on', async () => {
  const [earlier, later] = await Promise.all(
    [100, 101].map((steps) => beginningsOf(PROTOCOLS.chat?.(steps) ?? {})),
  );
  expect(later).toHaveLength(MAX_BEGINNINGS);
  expect(later?.slice(0, -1)).toEqual(earlier?.slice(1));
  const { turns, ends } = await prefixOf(PROTOCOLS.chat?.(100) ?? {});
  expect({ turns, ends: ends.length }).toEqual({ turns: 101, ends: MAX_ENDS });
});

test('a prefix has a text of at most 108 characters, from which it can be read', async () => {
  for (const steps of [0, 3, 100]) {
    const prefix = await prefixOf(PROTOCOLS.chat?.(steps) ?? {});
    const text = encodePrefix(prefix);
    expect(text.length).toBeLessThanOrEqual(108);
    expect(decodePrefix(text)).toEqual(prefix);
  }
  const most = { turns: 1e9, ends: Array<string>(MAX_ENDS).fill('f'.repeat(12)) };
  expect(encodePrefix({ ...(await prefixOf({})), ...most })).toHaveLength(108);
  for (const text of ['', 'x', 'A'.repeat(45), 'A'.repeat(200), '!'.repeat(60)])
    expect(decodePrefix(text)).toBe(null);
});

test('a body without a conversation has no beginning', async () => {
  expect(await beginningsOf({ model: 'm', prompt: 'Open' })).toEqual([]);
  expect(await prefixOf({ messages: 'none', input: null })).toMatchObject({ turns: 0, ends: [] });
});
