/**
 * With USERS=hash and off no line of the log, record, memory, entry or header has the name of a user, and no line, record or memory a
 * prompt: requests that are full of both, at providers that say both back in every place. Each event of the log has to be seen here, or
 * to say why it has nothing of a request.
 */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { TaughtMemory } from '../../src/fitting/taught-memory.ts';
import { NO_HOOKS } from '../../src/http/hooks.ts';
import {
  type OperatorAlert,
  OperatorAlerts,
  type ProviderCounts,
} from '../../src/ledger/alerts/operator-alerts.ts';
import { LOG_EVENTS, type LogEvent } from '../../src/shared/log-event.ts';
import { decodeObject, type JsonObject, textOf } from '../../tools/simulator/json.ts';
import { MemoryResponses } from '../durable-responses/memory-responses.ts';
import { MemorySql } from '../ledger/limits/memory-sql.ts';
import { MemoryStore } from '../metering/records.ts';
import { LimitedGateway } from './limited-gateway.ts';
import { Running } from './running-gateway.ts';
import {
  answerWith,
  DONE,
  event,
  json,
  ROLE,
  RoutedGateway,
  refuse,
  type Script,
  settle,
  sse,
} from './upstreams.ts';

const USER = 'qxzjuser';
const PROMPT = 'zebraquartz4711';
const SENTENCE = `${PROMPT} my secret plan of the moon for ${USER}`;
const MARKS = new RegExp(`${USER}|${PROMPT}`, 'i');

/** Seen: a test below makes it. Otherwise why its line can have neither. */
const EVENTS: Readonly<Record<LogEvent, 'seen' | string>> = {
  request: 'seen',
  request_refused: 'seen',
  record_lost: 'seen',
  dead_letters_stored: 'two counts',
  reasoning_removed: 'seen',
  key_created: 'seen',
  key_changed: 'seen',
  key_revoked: 'seen',
  budget_added: 'seen',
  audit_not_stored: 'seen',
  team_created: 'what an admin wrote, which names no user',
  team_changed: 'as team_created',
  team_deleted: 'as team_created',
  erasure_started: 'seen',
  erasure_advanced: 'seen',
  erasure_failed: 'seen',
  erasing_users_unreadable: 'the error of KV',
  misconfigured: 'settings, or the entry of a key',
  setting_missing: 'settings',
  setting_unused: 'settings',
  setting_unknown: 'settings',
  setting_weak: 'settings',
  secret_unreadable: 'a setting, and the error of Secrets Store',
  models_unavailable: 'seen',
  models_empty: 'settings',
  counter_failed: 'seen',
  credential_failed: 'a setting, and a sentence of Weir’s with a status',
  clock_corrected: 'a number',
  records_archived: 'counts and times',
  records_deleted: 'counts and times',
  archive_failed: 'the error of R2',
  ledger_unreachable: 'seen',
  ledger_unreadable: 'the reason of the decoder: names of fields',
  reservation_expired: 'numbers and ids',
  lease_expired: 'numbers and ids',
  refusals_not_written: 'the error of the ledger',
  budget_overdrawn: 'seen',
  budget_alert: 'numbers of a budget',
  budget_alert_failed: 'the status of ALERT_URL',
  budget_alert_lost: 'the status of ALERT_URL',
  provider_failing: 'seen',
  credential_refused: 'seen',
  weekly_summary: 'sums, models and names of keys',
  alert_failed: 'the status of ALERT_URL',
  alert_lost: 'the status of ALERT_URL',
  budget_ended: 'seen',
  limiter_failed: 'seen',
  prices_unreadable: 'seen',
  access_unreachable: 'the error of Access',
  response_not_stored: 'seen',
  response_not_settled: 'the error of the object',
  response_interrupted: 'an id',
  response_run_failed: 'an error of Weir',
  response_storage_failed: 'the error of the object',
  response_unreadable: 'seen',
  circuit_opened: 'seen',
  circuit_closed: 'seen',
  provider_learned: 'seen',
  hook_failed: 'seen',
  origin_unreachable: 'the address of the site',
  internal_error: 'seen',
};

const HEADERS = { 'x-weir-user': USER, 'x-session-id': 'session-1' };
const NAMED: JsonObject = {
  user: USER,
  safety_identifier: USER,
  metadata: { user_id: `user_0_account_${USER}_session_s` },
};
const MESSAGES = [{ role: 'user', content: SENTENCE }];
const CONTENTS = [{ role: 'user', parts: [{ text: SENTENCE }] }];
const HEADS = { 'x-request-id': SENTENCE, 'retry-after': SENTENCE, 'openai-organization': USER };

/** All that a provider can say, in one error. */
function said(message: string): JsonObject {
  const inner = { message, reason: SENTENCE };
  return {
    message,
    type: SENTENCE,
    code: SENTENCE,
    param: SENTENCE,
    details: [inner],
    metadata: { raw: message },
  };
}

const MESSAGES_SAID = [
  `Invalid value: '${PROMPT}' for ${USER}`,
  `User ${USER} said ${SENTENCE}`,
  `user=${encodeURIComponent(USER)} &quot;${PROMPT}&quot; ${USER.toUpperCase()}_1`,
  `Unsupported parameter: 'temperature' for ${USER}: ${PROMPT}`,
  `Unrecognized request argument supplied: seed. ${USER}, ${PROMPT}`,
];
const STATUSES = [400, 401, 403, 404, 422, 429, 500, 503];

const BEHAVIORS: readonly Script[] = [
  ...MESSAGES_SAID.flatMap((message) => STATUSES.map((status) => refuse(status, said(message), HEADS))),
  ...MESSAGES_SAID.map((message) => sse(ROLE, `data: ${JSON.stringify({ error: said(message) })}\n\n`)),
  ...MESSAGES_SAID.map((message) =>
    sse(ROLE, event({ content: 'Hi' }), `data: ${JSON.stringify({ error: said(message) })}\n\n`),
  ),
  sse(ROLE, event({ content: SENTENCE }), event({}, SENTENCE), DONE),
  sse(
    ROLE,
    event({ content: SENTENCE }, null, { model: SENTENCE, service_tier: SENTENCE, system_fingerprint: USER }),
  ),
  json({ error: said(SENTENCE) }),
  json({
    ...{ id: USER, model: SENTENCE, service_tier: SENTENCE },
    choices: [{ index: 0, message: { role: 'assistant', content: SENTENCE }, finish_reason: SENTENCE }],
  }),
  answerWith(SENTENCE),
];

const REQUESTS: readonly (readonly [path: string, body: JsonObject])[] = [
  ['/v1/chat/completions', { messages: MESSAGES, temperature: 0.4, seed: 1 }],
  ['/v1/chat/completions', { messages: MESSAGES, temperature: 0.4, stream: true, reasoning_effort: PROMPT }],
  ['/v1/messages', { messages: MESSAGES, max_tokens: 9, temperature: 0.4 }],
  ['/v1/responses', { input: SENTENCE, store: false, stream: true, temperature: 0.4 }],
  ['/v1/messages/count_tokens', { messages: MESSAGES, max_tokens: 9 }],
  ['/v1/chat/completions', { messages: MESSAGES, temperature: SENTENCE, n: SENTENCE }],
  ['/v1beta/models/acme/m:generateContent', { contents: CONTENTS, labels: { user: USER } }],
  [
    `/v1beta/models/acme/m:streamGenerateContent?key=${USER}`,
    { contents: CONTENTS, cachedContent: SENTENCE },
  ],
  [`/v1/${USER}`, { messages: MESSAGES }],
  [`/v1beta/interactions/${USER}`, { input: SENTENCE }],
];

/** Refusals that teach, each before an answer. */
const TEACHING: readonly Script[] = [
  refuse(400, { message: `Unsupported value: 'temperature' does not support 0.4 with this model. ${USER}` }),
  answerWith(SENTENCE),
  refuse(400, { message: 'Invalid reasoning effort' }),
  answerWith(SENTENCE),
  refuse(400, { message: `Unrecognized request argument supplied: user. For ${USER}`, param: 'user' }),
  answerWith(SENTENCE),
];

const CHAT = { messages: MESSAGES, temperature: 0.4, reasoning_effort: PROMPT };
const TAUGHT = TEACHING.map(() => ['/v1/chat/completions', CHAT] as const);

/** What was logged, stored and sent to the client in headers. */
interface Left {
  readonly logged: readonly string[];
  readonly headers: readonly string[];
  readonly entries: string;
  readonly events: ReadonlySet<unknown>;
}

async function run(
  env: JsonObject,
  behaviors: readonly Script[],
  requests: readonly (readonly [path: string, body: JsonObject])[],
  turns: number,
): Promise<Left> {
  const store = new MemoryStore();
  const own = {
    ...{ USER_HASH_KEY: 'a secret of users', LEDGER: 'kv', ACME_KEY: 'key-of-acme', ...env },
    PROVIDERS: { acme: { base_url: 'https://acme/v1', api_key: 'ACME_KEY', like: env.LIKE } },
  };
  const gateway = new RoutedGateway({ m: behaviors }, own, { store } as object);
  const headers: string[] = [];
  for (let turn = 0; turn < turns; turn++) {
    for (const [path, body] of requests) {
      const init = { headers: HEADERS };
      const response = await gateway.ask({ model: 'acme/m', ...NAMED, ...body }, init, path);
      await response.text();
      headers.push(JSON.stringify([...response.headers]));
      await settle();
    }
    // Circuits may close.
    await gateway.clock.advance(120_000);
  }
  const { logged } = gateway.gateway;
  return {
    logged: logged.map((line) => JSON.stringify(line)),
    headers,
    entries: JSON.stringify([...store.entries]),
    events: new Set(logged.map(({ event: name }) => name)),
  };
}

/** KV that answers with prices that are none, and takes nothing. */
class FailingStore extends MemoryStore {
  override put(): Promise<void> {
    return Promise.reject(new Error('KV PUT failed: 503'));
  }

  override async get(names: string | readonly string[]): Promise<unknown> {
    return names === 'config/prices' ? '[{"model":1}]' : super.get(names);
  }
}

/** An answer of Responses for which the provider removed reasoning. */
const REMOVED = json({
  ...{ id: 'resp_1', model: SENTENCE, status: 'completed', usage: { input_tokens: 1, output_tokens: 1 } },
  output: [{ type: 'message', content: [{ type: 'output_text', text: SENTENCE }] }],
  input_transformations: [SENTENCE, 'prefix_mismatch'].map((reason) => {
    return { id: USER, type: 'reasoning', action: 'removed', reason };
  }),
});

const seen = new Set<unknown>();

afterEach(() => vi.restoreAllMocks());

describe.each(['hash', 'off'])('Y2 E5 USERS=%s', (USERS) => {
  test.each([
    [
      'that fails in every way, in the form of chat',
      { LIKE: 'openai' },
      BEHAVIORS,
      REQUESTS,
      BEHAVIORS.length,
    ],
    ['of Messages', { LIKE: 'anthropic' }, BEHAVIORS, REQUESTS, BEHAVIORS.length],
    ['that teaches', { LIKE: 'mistral' }, TEACHING, TAUGHT, 2],
  ] as const)(
    'at a provider %s, no line, entry, memory and header has a mark',
    async (_, env, behaviors, requests, turns) => {
      const memory = vi.spyOn(TaughtMemory.prototype, 'note');
      const { logged, headers, entries, events } = await run({ USERS, ...env }, behaviors, requests, turns);
      for (const name of events) seen.add(name);
      const marked = (lines: readonly string[]) => lines.filter((line) => MARKS.test(line)).slice(0, 3);
      expect(marked(logged)).toEqual([]);
      expect(marked(headers)).toEqual([]);
      expect(entries).not.toMatch(MARKS);
      expect(marked(memory.mock.calls.map((call) => JSON.stringify(call)))).toEqual([]);
      expect(memory.mock.calls.length > 0).toBe(env.LIKE === 'mistral');
    },
  );
});

test.each(['hash', 'off'])(
  'Y2 E5 USERS=%s, where stores and bindings fail: no line and header has a mark',
  async (USERS) => {
    const own = {
      store: new FailingStore(),
      limiter: { limit: () => Promise.reject(new Error('LIMITER failed: 503')) },
    };
    const behaviors = { 'gpt-6.2-astra': [REMOVED], '': [refuse(500, said(SENTENCE), HEADS)] };
    const env = { USERS, USER_HASH_KEY: 'a secret of users', LEDGER: 'kv' };
    const gateway = new RoutedGateway(behaviors, env, own as object);
    const init = { headers: HEADERS };
    const body = { model: 'openai/gpt-6.2-astra', ...NAMED, input: SENTENCE };
    const responses = [
      await gateway.ask(body, init, '/v1/responses'),
      await gateway.gateway.fetch('/v1/models', 'x', init),
    ];
    for (const response of responses) await response.text();
    await settle();
    await gateway.clock.advance(120_000);
    await settle();
    const { logged } = gateway.gateway;
    for (const { event: name } of logged) seen.add(name);
    const lines = [...logged, ...responses.map(({ headers }) => [...headers])].map((line) =>
      JSON.stringify(line),
    );
    expect(lines.filter((line) => MARKS.test(line))).toEqual([]);
  },
);

/** KV of which one kind of entries cannot be read or written for a while. */
class PartlyFailingStore extends MemoryStore {
  failing: RegExp | null = null;

  #check(name: string): void {
    if (this.failing?.test(name)) throw new Error('KV failed: 503');
  }

  override async put(...args: Parameters<MemoryStore['put']>): Promise<void> {
    this.#check(args[0]);
    return super.put(...args);
  }

  override async get(names: string | readonly string[]): Promise<unknown> {
    for (const name of [names].flat()) this.#check(name);
    return super.get(names);
  }

  override async list(...args: Parameters<MemoryStore['list']>) {
    this.#check(String(args[0]?.prefix));
    return super.list(...args);
  }
}

test.each(['hash', 'off'])(
  'Y2 Y10 USERS=%s: keys of a user, and the erasure of one, also where KV fails: no line has a mark',
  async (USERS) => {
    const store = new PartlyFailingStore();
    const env = {
      USERS,
      USER_HASH_KEY: 'a secret of users',
      LEDGER: 'kv',
      AUTH: 'keys',
      WEIR_LEDGER: undefined,
    };
    const gateway = new RoutedGateway({ 'gpt-4o': BEHAVIORS }, env, { store } as object);
    const admin = async (method: string, path: string, body?: JsonObject) => {
      const init = { method, headers: HEADERS, ...(body && { body: JSON.stringify(body) }) };
      return decodeObject(await (await gateway.gateway.fetch(path, 'admin', init)).text()) ?? {};
    };
    const made = await admin('POST', '/admin/keys', { name: 'team', user: USER });
    const id = textOf(made.id);
    await admin('PATCH', `/admin/keys/${id}`, { user: `${USER}2` });
    for (const [path, body] of REQUESTS) {
      const init = { headers: HEADERS };
      const named = { model: 'openai/gpt-4o', ...NAMED, ...body };
      await (
        await gateway.gateway.post(path.replace('acme/m', 'openai/gpt-4o'), textOf(made.key), named, init)
      ).text();
      await settle();
    }
    for (const failing of [/^audit\//, /eras/, /^usage\//, null]) {
      store.failing = failing;
      await admin('PATCH', `/admin/keys/${id}`, { user: `${USER}${failing === null ? 3 : 4}` });
      await admin('DELETE', `/admin/users/${USER}`);
      await (await gateway.ask({ model: 'openai/gpt-4o', ...NAMED }, { headers: HEADERS })).text();
      for (let step = 0; step < 4; step++) {
        await gateway.clock.advance(180_000);
        await settle();
        await admin('DELETE', `/admin/users/${USER}`);
      }
    }
    await admin('DELETE', `/admin/keys/${id}`);
    await settle();
    expectNoMarks(gateway.gateway.logged);
  },
);

/** Says which events these lines are, and that none has a mark. */
function expectNoMarks(logged: readonly Readonly<Record<string, unknown>>[]): void {
  for (const { event: name } of logged) seen.add(name);
  const lines = logged.map((line) => JSON.stringify(line));
  expect(lines.filter((line) => MARKS.test(line)).slice(0, 3)).toEqual([]);
}

test.each(['hash', 'off'])(
  'Y2 L1 USERS=%s: keys with budgets that are overdrawn and end, also while the object fails: no line has a mark',
  async (USERS) => {
    const env = { USERS, USER_HASH_KEY: 'a secret of users', AUTH: 'keys' };
    const gateway = new RoutedGateway({ 'gpt-4o': [answerWith(SENTENCE)] }, env);
    const admin = async (path: string, body: JsonObject) =>
      decodeObject(await (await gateway.gateway.post(path, 'admin', body, { headers: HEADERS })).text()) ??
      {};
    for (const mode of ['hard', 'warn']) {
      const budget = mode === 'hard' ? { USD: 5, per: 'month' } : { tokens: 5, mode };
      const made = await admin('/admin/keys', { name: 'team', user: USER, budget });
      if (mode === 'hard')
        await admin(`/v1/admin/keys/${textOf(made.id)}/budget`, { add: { USD: 1 }, id: 'more' });
      for (const trouble of ['none', 'none', 'fails', 'lost', 'none'] as const) {
        gateway.gateway.trouble = trouble;
        const body = { model: 'openai/gpt-4o', ...NAMED, messages: MESSAGES, max_tokens: 9 };
        const path = '/v1/chat/completions';
        await (await gateway.gateway.post(path, textOf(made.key), body, { headers: HEADERS })).text();
        await settle();
        await gateway.clock.advance(180_000);
      }
    }
    expectNoMarks(gateway.gateway.logged);
    const running = new Running({ USERS, USER_HASH_KEY: 'a secret of users' });
    const token = await running.gateway.key({ user: USER, budget: { tokens: 6000, mode: 'running' } });
    await running.events(await running.send(token, 'chat', 'own/llama', { ...NAMED, messages: MESSAGES }));
    expectNoMarks(running.gateway.logged);
  },
);

test.each(['hash', 'off'])(
  'Y2 G11 USERS=%s: alerts about a provider that repeats what it was sent have no mark',
  async (USERS) => {
    const sent: Readonly<Record<string, unknown>>[] = [];
    const alerts = new OperatorAlerts({
      sql: new MemorySql(),
      now: () => gateway.clock.now(),
      settings: async () => ({ percents: [], target: null }),
      wake: async () => {},
      fetch: async () => new Response(),
      log: (entry) => sent.push({ ...entry }),
    });
    const behaviors = {
      m: BEHAVIORS,
      denied: [refuse(401, said(SENTENCE), HEADS)],
      busy: [refuse(503, said(SENTENCE), HEADS)],
    };
    const gateway: RoutedGateway = new RoutedGateway(behaviors, {
      ...{ USERS, USER_HASH_KEY: 'a secret of users', RETRIES: '0', ACME_KEY: 'key-of-acme' },
      PROVIDERS: { acme: { base_url: 'https://acme/v1', api_key: 'ACME_KEY' } },
      WEIR_LEDGER: {
        getByName: () => ({
          takeCalls: (counts: ProviderCounts) => alerts.takeCalls(counts),
          noteAlert: (alert: OperatorAlert) => {
            sent.push({ ...alert });
            return alerts.noteAlert(alert);
          },
        }),
      } as never,
    });
    for (const model of ['busy', 'm', 'denied'].flatMap((name) => BEHAVIORS.map(() => name))) {
      await (
        await gateway.ask({ model: `acme/${model}`, ...NAMED, messages: MESSAGES }, { headers: HEADERS })
      ).text();
      await settle();
      await gateway.clock.advance(5000);
    }
    await gateway.clock.advance(600_000);
    await settle();
    expectNoMarks(sent);
    expectNoMarks(gateway.gateway.logged);
  },
);

test.each(['hash', 'off'])(
  'Y2 X8 USERS=%s: responses that cannot be stored or read, and a hook that fails: no line has a mark',
  async (USERS) => {
    const responses = new MemoryResponses();
    const env = {
      ...{ USERS, USER_HASH_KEY: 'a secret of users', RESPONSES: 'durable', AUTH: 'open' },
      WEIR_RESPONSES: responses,
    };
    const fetch = async () =>
      Response.json({
        ...{ id: 'resp_up', object: 'response', status: 'completed', model: SENTENCE },
        output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: SENTENCE }] }],
        usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
      });
    const gateway = new LimitedGateway(env, { fetch } as object, {
      ...NO_HOOKS,
      onRecord: () => {
        throw new Error('The host has no place for it');
      },
    });
    const ask = async () => {
      const body = { model: 'openai/gpt-4o-mini', ...NAMED, input: SENTENCE };
      const made = await gateway.post('/v1/responses', 'host', body, { headers: HEADERS });
      return textOf(decodeObject(await made.text())?.id);
    };
    const kept = await ask();
    responses.change(kept, '"version":1', '"version":9');
    await (await gateway.fetch(`/v1/responses/${kept}`, 'host', { headers: HEADERS })).text();
    responses.putError = new Error('The object is gone');
    await ask();
    await gateway.idle();
    expectNoMarks([...gateway.logged, ...responses.logged]);
  },
);

test('each event of the log is seen with these marks, or has nothing of a request', () => {
  expect(Object.keys(EVENTS).sort()).toEqual([...LOG_EVENTS].sort());
  expect(LOG_EVENTS.filter((name) => EVENTS[name] === 'seen' && !seen.has(name))).toEqual([]);
});
