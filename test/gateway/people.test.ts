/**
 * People of teams through the gateway in memory (Y12): who is let through where the teams cannot be read, with forged
 * tokens, and without the new settings.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GatewayPorts } from '../../src/gateway.ts';
import { decodeObject, type JsonObject, objectOf } from '../../tools/simulator/json.ts';
import { ACCESS_HEADER, AccessTeam } from '../attribution/access-team.ts';
import { MemoryStore } from '../metering/records.ts';
import { LimitedGateway, passingClock, startTimer } from './limited-gateway.ts';

const TEAM = '0123456789abcdef';
const RULES = 'team-people';

let access: AccessTeam;
beforeAll(async () => {
  access = await AccessTeam.start();
});
afterAll(() => access[Symbol.asyncDispose]());

const ANSWER = {
  id: 'a',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
};

/** Its clock is that of the tokens. */
const clock = passingClock({ now: () => 0, startTimer });

/** A store whose reads of some entries fail. */
class FailingStore extends MemoryStore {
  failing = '';
  override async get(names: string | readonly string[]): Promise<unknown> {
    if (this.failing !== '' && String(names).startsWith(this.failing)) throw new Error('KV is down');
    return super.get(names);
  }
}

/** @param rules the teams of people, as KV has them; null: it has no such entry */
async function gatewayWith(rules: unknown, settings: JsonObject = {}) {
  const store = new FailingStore();
  if (rules !== null) await store.put(RULES, JSON.stringify(rules));
  await store.put(
    `team/${TEAM}`,
    JSON.stringify({ id: TEAM, name: 'eng', models: ['openai/*'], created_at: 'c', limits: null }),
  );
  let sent = 0;
  const upstream = async (input: Request | string, init?: RequestInit) => {
    if (String(input).startsWith(access.url)) return fetch(input, init);
    sent++;
    return Response.json(ANSWER);
  };
  const gateway = new LimitedGateway(
    { ...access.settings, AUTH: 'access', ACCESS_GROUPS_CLAIM: 'groups', ...settings },
    { fetch: upstream, clock, store: store as unknown as GatewayPorts['store'] },
  );
  return { gateway, store, sent: () => sent };
}

const rulesOf = (fields: JsonObject) => ({ version: 1, teams: [{ id: TEAM, created_at: 'c', ...fields }] });

async function codeOf(response: Response): Promise<[number, unknown]> {
  const body = decodeObject(await response.text()) ?? {};
  return [response.status, objectOf(body.error).code];
}

const SERVED = [200, undefined];
const UNKNOWN = [403, 'groups_unknown'];
const UNREADABLE = [503, 'ledger_unreachable'];

describe('Y12 while the teams of people cannot be read', () => {
  test.each<[string, unknown]>([
    ['damaged', { version: 1, teams: 'x' }],
    ['of a later version', { version: 2, teams: [] }],
    [
      'of a team that does not exist',
      { version: 1, teams: [{ id: 'f'.repeat(16), created_at: 'c', people: ['*'] }] },
    ],
  ])('%s: callers without a key get 503, and those with a key are served', async (_, rules) => {
    const { gateway, sent } = await gatewayWith(rules);
    for (const claims of [{ groups: ['eng'] }, {}, access.service('ci.access')]) {
      const refused = await gateway.ask('', {}, { headers: { ...access.headers(claims), ...JSON_BODY } });
      expect(refused.headers.get('retry-after')).toBe('5');
      expect(await codeOf(refused)).toEqual(UNREADABLE);
      expect(await codeOf(await gateway.ask(access.token(claims)))).toEqual(UNREADABLE);
    }
    expect(sent()).toBe(0);
    expect(gateway.logged.filter(({ event }) => event === 'ledger_unreadable')).toHaveLength(6);
    expect(await codeOf(await gateway.ask(await gateway.key()))).toEqual(SERVED);
  });

  test.each([RULES, `team/${TEAM}`])('because KV fails for %s: 503, until it answers', async (failing) => {
    const { gateway, store, sent } = await gatewayWith(rulesOf({ people: ['*'] }));
    store.failing = failing;
    expect(await codeOf(await gateway.ask(access.token()))).toEqual(UNREADABLE);
    expect(sent()).toBe(0);
    store.failing = '';
    expect(await codeOf(await gateway.ask(access.token()))).toEqual(SERVED);
  });
});

const JSON_BODY = { 'content-type': 'application/json' };

describe('Y12 groups in a token', () => {
  test.each<[string, unknown, readonly unknown[]]>([
    ['of the team', ['ops', 'eng'], SERVED],
    ['of no team', ['ops'], SERVED],
    ['none', [], SERVED],
    ['absent', undefined, UNKNOWN],
    ['a text', 'eng', UNKNOWN],
    ['an object', { 0: 'eng', length: 1 }, UNKNOWN],
    ['not only texts', ['eng', null], UNKNOWN],
    ['more than are read', Array.from({ length: 1001 }, (_, n) => String(n)), UNKNOWN],
  ])('%s', async (_, groups, expected) => {
    const { gateway } = await gatewayWith(rulesOf({ groups: ['eng'] }));
    const own = groups as JsonObject['x'];
    expect(await codeOf(await gateway.ask(access.token({ groups: own })))).toEqual(expected);
    // The models of the team are for those in it alone.
    const model = { model: 'deepseek/deepseek-chat' };
    const other = await codeOf(await gateway.ask(access.token({ groups: own }), model));
    const isMember = Array.isArray(groups) && groups.includes('eng') && expected === SERVED;
    expect(other).toEqual(isMember ? [403, 'model_not_allowed'] : expected);
  });

  test('are not known without ACCESS_GROUPS_CLAIM: a team by groups is no permission', async () => {
    const { gateway, sent } = await gatewayWith(rulesOf({ groups: ['eng'] }), { ACCESS_GROUPS_CLAIM: '' });
    expect(await codeOf(await gateway.ask(access.token({ groups: ['eng'] })))).toEqual(UNKNOWN);
    expect(sent()).toBe(0);
  });

  test.each(['keys', 'access'])('of forged tokens let nobody through under AUTH=%s', async (AUTH) => {
    const { gateway, sent } = await gatewayWith(rulesOf({ groups: ['*'], people: ['*'], default: true }), {
      AUTH,
    });
    const good = access.token({ groups: ['eng'] });
    let tried = 0;
    for (const [what, token] of access.forgeries()) {
      if (!token.startsWith('eyJ')) continue;
      for (const headers of [{}, { [ACCESS_HEADER]: good }]) {
        const response = await gateway.ask(token, {}, { headers: { ...JSON_BODY, ...headers } });
        expect([what, ...(await codeOf(response))]).toEqual([what, 401, 'invalid_api_key']);
        tried++;
      }
    }
    expect(tried).toBeGreaterThan(50);
    expect(sent()).toBe(0);
    expect(await codeOf(await gateway.ask(good))).toEqual(SERVED);
  });
});

describe('Y12 a deployment without teams of people', () => {
  test.each<[string, JsonObject]>([
    ['as before', { ACCESS_GROUPS_CLAIM: '' }],
    ['with the claim', {}],
    ['without objects', { WEIR_LEDGER: undefined } as unknown as JsonObject],
  ])('%s serves all callers of Access without limits and without a team', async (_, settings) => {
    const { gateway } = await gatewayWith(null, settings);
    for (const claims of [{}, { groups: 'eng' }, access.service('ci.access')])
      expect(await codeOf(await gateway.ask(access.token(claims)))).toEqual(SERVED);
    const shown = await gateway.fetch('/v1/key', access.token());
    const own = decodeObject(await shown.text()) ?? {};
    expect(own).toMatchObject({ limits: null, user: 'ada@example.com', name: null });
    expect(Object.keys(own)).not.toContain('team');
    await gateway.idle();
    const records = gateway.logged.filter(({ event }) => event === 'request');
    expect(records).toHaveLength(3);
    for (const record of records) expect(record).not.toHaveProperty('team');
    expect(gateway.calls).toEqual([]);
  });

  test('reads the teams of people once in 30 seconds, and never for a key', async () => {
    const { gateway, store } = await gatewayWith(null);
    const reads: string[] = [];
    const get = store.get.bind(store);
    store.get = async (names) => {
      reads.push(String(names));
      return get(names);
    };
    const key = await gateway.key();
    await gateway.ask(key);
    expect(reads).not.toContain(RULES);
    for (let n = 0; n < 5; n++) await gateway.ask(access.token());
    expect(reads.filter((name) => name === RULES)).toHaveLength(1);
  });
});
