/** Tests the fields of admin bodies: what each takes, and the message about what it does not take. */
import { describe, expect, test } from 'vitest';
import { KEY_BODY, ROTATION_BODY, TOKEN_BODY, TOP_UP_BODY } from '../../src/api/bodies.ts';
import { readFields, unknownFieldOf } from '../../src/auth/body-fields.ts';
import { areFactsReadable, decodeFacts, factsOf, KEY_FACTS } from '../../src/auth/key-facts.ts';
import { openApiText } from '../../tools/openapi/document.ts';
import { decodeObject, objectOf } from '../../tools/simulator/json.ts';

const NOW = Date.parse('2026-11-28T12:00:00Z');
const unknown = unknownFieldOf('A key has');
const BODIES = { key: KEY_BODY, rotation: ROTATION_BODY, token: TOKEN_BODY, top_up: TOP_UP_BODY };
/** What a valid body of each must have. */
const NEEDED = { key: { name: 'a' }, rotation: {}, token: { name: 'a', scope: 'usage' }, top_up: {} };

function read(body: keyof typeof BODIES, fields: object) {
  return readFields({ ...NEEDED[body], ...fields }, BODIES[body], { unknown, nowMs: NOW });
}

describe('a value in another form is refused with the name of its field', () => {
  test.each<[body: keyof typeof BODIES, fields: object, message: string]>([
    ['key', { name: '' }, 'name must be a text of at most 100 characters'],
    ['key', { name: 'a'.repeat(101) }, 'name must be a text of at most 100 characters'],
    ['key', { models: [] }, 'models must be a list of globs, as ["deepseek/*"]'],
    ['key', { models: ['a', 7] }, 'models must be a list of globs, as ["deepseek/*"]'],
    [
      'key',
      { expires_at: 'soon' },
      'expires_at must be a time, as "2027-01-01T00:00:00Z", or seconds since 1970',
    ],
    ['key', { expires_at: '2026-11-28T12:00:00Z' }, 'expires_at must be in the future'],
    ['key', { disabled: 'yes' }, 'disabled must be true or false'],
    ['key', { user: ' ' }, 'user must be a text of at most 100 characters, or null'],
    ['key', { user: 7 }, 'user must be a text of at most 100 characters, or null'],
    [
      'key',
      { tags: { A: 'b' } },
      'tags must be an object as {"team": "search"}, of at most 8 names of a-z, 0-9, _ . - and at most 32 characters',
    ],
    [
      'key',
      { tags: [] },
      'tags must be an object as {"team": "search"}, of at most 8 names of a-z, 0-9, _ . - and at most 32 characters',
    ],
    ['key', { require_user: 1 }, 'require_user must be true or false'],
    ['rotation', { overlap_hours: 721 }, 'overlap_hours must be a number from 0 to 720'],
    ['rotation', { overlap_hours: null }, 'overlap_hours must be a number from 0 to 720'],
    ['token', { scope: 'all' }, 'scope must be "usage" or "team", or absent for a key'],
    ['top_up', { per: 'year' }, 'per must be one of: day, week, month, total'],
    ['top_up', { id: null }, 'id must be a text of 1 to 64 letters, digits and _ . : -'],
    ['top_up', { note: null }, 'note must be a text of at most 200 characters'],
    ['top_up', { note: 'a'.repeat(201) }, 'note must be a text of at most 200 characters'],
  ])('%s %j', (body, fields, message) => {
    const [param = ''] = Object.keys(fields);
    expect(read(body, fields)).toMatchObject({ kind: 'error', error: { message, param } });
  });

  test('a field of another name names the nearest one', () => {
    expect(read('key', { modles: ['a'] })).toMatchObject({
      kind: 'error',
      error: {
        message:
          'A key has no field "modles": did you mean models? The fields are name, models, expires_at, disabled, user, tags, require_user',
        param: 'modles',
      },
    });
  });
});

test('absent and null fields of a key restrict nothing, and a flag is kept only where it is true', () => {
  const none = { models: null, expires_at: null, disabled: undefined };
  const nothing = { ...none, user: undefined, tags: undefined, require_user: undefined };
  const nulls = {
    models: null,
    expires_at: null,
    disabled: null,
    user: null,
    tags: null,
    require_user: null,
  };
  for (const fields of [{}, nulls, { disabled: false, require_user: false, tags: {} }])
    expect(read('key', fields)).toEqual({ kind: 'ok', value: { name: 'a', ...nothing } });
  expect(read('key', { user: ' ada ', disabled: true, tags: { team: 'a' } })).toMatchObject({
    value: { user: 'ada', disabled: true, tags: { team: 'a' } },
  });
});

test('stored facts: those in their form are read, and one in another form makes the key unreadable', () => {
  const stored = { id: 'k', user: 'ada', tags: { team: 'a' }, require_user: true };
  expect(decodeFacts(stored)).toEqual({ user: 'ada', tags: { team: 'a' }, require_user: true });
  expect(factsOf({ ...decodeFacts(stored), ...{ name: 'x' } })).toEqual(decodeFacts(stored));
  expect(decodeFacts({ user: null, tags: {}, require_user: false })).toEqual({});
  expect(areFactsReadable(stored)).toBe(true);
  expect(areFactsReadable({ user: null })).toBe(true);
  for (const broken of [{ user: 7 }, { tags: { team: 7 } }, { tags: 'a' }, { require_user: 'true' }])
    expect([broken, areFactsReadable(broken)]).toEqual([broken, false]);
});

test('openapi.json has each fact of a key in what creates, changes and shows one', () => {
  const schemas = objectOf(objectOf(decodeObject(openApiText())?.components).schemas);
  for (const schema of ['NewKey', 'KeyChange', 'Key', 'ChangedKey', 'CreatedKey', 'KeyStatus']) {
    const properties = Object.keys(objectOf(objectOf(schemas[schema]).properties));
    expect([schema, properties]).toEqual([schema, expect.arrayContaining(Object.keys(KEY_FACTS))]);
  }
});
