/** Tests that the ids and names of callers of different kinds never meet, whatever texts they come from. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { userHasher } from '../../src/attribution/attribution.ts';
import { accessName, type CallerKind, callerId, OPEN_ID } from '../../src/auth/caller-ids.ts';
import { sha256 } from '../../src/auth/keys.ts';

Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

const KINDS: readonly CallerKind[] = ['key', 'credential', 'host', 'access_user', 'access_service'];
const PAIRS = KINDS.flatMap((kind, i) => KINDS.slice(i + 1).map((other) => [kind, other] as const));

const hex = (text: string) => createHash('sha256').update(text).digest('hex');
const NAMES = [
  'ada@example.com',
  'open',
  '*',
  'admin',
  'access_user',
  'service',
  'weir_0123',
  'ci.access',
  'User:a@b.c',
];

/** Texts that look like ids or like the inner form of another kind, and ids made of those again. */
const TEXTS = NAMES.flatMap((name) => [
  name,
  hex(name),
  hex(name).slice(0, 16),
  hex(name).slice(0, 24),
  ...['host_', 'access_', 'access_service_', 'service_', 'credential ', 'key/'].flatMap((prefix) => [
    prefix + name,
    prefix + hex(name).slice(0, 16),
    prefix + hex(name).slice(0, 24),
  ]),
]);

const hash = userHasher(null);
/** A gateway key has a form that the gateway gives it. */
const given = (kind: CallerKind, text: string) =>
  kind === 'key' ? `weir_${text.replace(/^weir_/, '')}` : text;
const idOf = (kind: CallerKind, text: string) =>
  callerId(kind, given(kind, text), kind.startsWith('access') ? hash : sha256);

describe('K1 Y7 ids of callers', () => {
  test.each(PAIRS)('of %s and %s are never the same', async (kind, other) => {
    const ids = new Set(await Promise.all(TEXTS.map((text) => idOf(kind, text))));
    for (const text of [...TEXTS, ...TEXTS.map((one) => `weir_${one}`), ...ids])
      expect(ids.has(await idOf(other, text)), text).toBe(false);
    expect(ids.has(OPEN_ID)).toBe(false);
  });

  test('are those that stored records have: the start of a digest, host_ and access_ with a hash', async () => {
    expect(await callerId('key', 'weir_a')).toBe(hex('weir_a').slice(0, 16));
    expect(await callerId('credential', 'sk-a')).toBe(hex('sk-a').slice(0, 16));
    expect(await callerId('host', 'team-1')).toBe('host_team-1');
    expect(await callerId('access_user', 'ada@example.com', hash)).toBe(
      `access_${hex('ada@example.com').slice(0, 24)}`,
    );
  });
});

test('Y7 names of users and services of Access are never the same', () => {
  const names = TEXTS.flatMap((text) => [
    text.toLowerCase(),
    `user:${text}`.toLowerCase(),
    `service:${text}`.toLowerCase(),
  ]);
  const users = new Set(names.map((name) => accessName('access_user', name)));
  for (const name of names) expect(users.has(accessName('access_service', name)), name).toBe(false);
  expect(accessName('access_user', 'ada@example.com')).toBe('ada@example.com');
  expect(accessName('access_service', 'e367826f93b8.access')).toBe('e367826f93b8.access');
});
