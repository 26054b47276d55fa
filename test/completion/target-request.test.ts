/** Tests that the request to one target follows from the client's body, the target and the rows alone, and changes none of them (R10). */
import { expect, test } from 'vitest';
import {
  type ReplayedBody,
  type ReplayedRequest,
  type TargetRows,
  writeTargetRequest,
} from '../../src/completion/target-request.ts';
import { LearnedRefusals } from '../../src/fitting/learned.ts';
import type { Finding } from '../../src/fitting/rows.ts';
import { messages } from '../../src/protocols/anthropic-messages/client.ts';
import { gemini } from '../../src/protocols/gemini/client.ts';
import { chat } from '../../src/protocols/openai-chat/client.ts';
import { responsesClient } from '../../src/protocols/openai-responses/client.ts';
import type { ClientProtocol } from '../../src/protocols/shared/client-protocol.ts';
import { PROFILES, PROVIDER_SETTINGS, PROVIDERS } from '../../src/providers/index.ts';
import type { MemoryGrant } from '../../src/stream/memory.ts';
import { addressesOfFamilies } from '../../tools/bodies/cases.ts';
import { chatRequest, messagesRequest, responsesRequest } from '../../tools/bodies/sample.ts';
import type { JsonObject } from '../../tools/simulator/json.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import { seeded } from '../random.ts';
import { SEED, sampleOf } from '../random-run.ts';
import { settingsWith, targetsOf } from '../routing/targets.ts';

// workerd has this; Node has it only in later versions.
Object.assign(Uint8Array.prototype, {
  toHex(this: Uint8Array) {
    return Buffer.from(this).toString('hex');
  },
});

const ADDRESSES = addressesOfFamilies();

/** Plain objects and lists of the value, copied and frozen. What has code or state of its own, such as functions and patterns, stays. */
function frozen<Value>(value: Value, copies: Map<unknown, unknown> = new Map()): Value {
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value;
  const known = copies.get(value);
  if (known !== undefined) return known as Value;
  const isPlain = Array.isArray(value) || [Object.prototype, null].includes(Object.getPrototypeOf(value));
  if (!isPlain) return value;
  const copy: object = Array.isArray(value) ? [] : {};
  copies.set(value, copy);
  for (const [name, member] of Object.entries(value)) {
    Object.defineProperty(copy, name, { value: frozen(member, copies), enumerable: true });
  }
  return Object.freeze(copy) as Value;
}

const builtIn = new Set(PROVIDERS.map(({ id }) => id));
const ENTRIES = PROFILES.filter(({ id }) => !builtIn.has(id)).map(({ id }) => [
  id,
  { base_url: `https://${id}.example/v1`, api_key: 'OPENAI_API_KEY', like: id },
]);
const NEEDED = {
  OPENTOKEN_BASE_URL: 'https://host.example/v1',
  XEROTIER_BASE_URL: 'https://host.example/v1',
  AZURE_RESOURCE: 'weir',
  AWS_BEARER_TOKEN_BEDROCK: 'k',
  AWS_REGION: 'us-east-1',
  CLOUDFLARE_AI_TOKEN: 'k',
  CLOUDFLARE_ACCOUNT_ID: '0123456789abcdef0123456789abcdef',
};
const settings = settingsWith({
  ...Object.fromEntries(
    PROVIDER_SETTINGS.filter((name) => name.endsWith('_API_KEY')).map((name) => [name, 'k']),
  ),
  ...NEEDED,
  PROVIDERS: JSON.stringify(Object.fromEntries(ENTRIES)),
});

/** Rows of each kind, of which each body meets some. */
const FINDINGS: readonly Finding[] = [
  { kind: 'unsupported', field: 'seed', isUnknown: false },
  { kind: 'renamed', field: 'max_tokens', to: 'max_completion_tokens' },
  { kind: 'levels', field: 'reasoning_effort', levels: ['low', 'max'] },
  { kind: 'range', field: 'temperature', min: 0, max: 0.5 },
  { kind: 'conflict', field: 'top_p', with: 'temperature' },
  { kind: 'thinking_required', levels: ['low'] },
  { kind: 'forced_tool' },
  { kind: 'schema', keyword: 'minLength', allowed: [] },
  { kind: 'schema_root' },
  { kind: 'developer_role' },
];

const REQUEST: ReplayedRequest = {
  context: { settings, upstreams: { learned: new LearnedRefusals() }, ports: { clock: { now: () => 0 } } },
  route: 'chat',
  headers: new Headers({ 'anthropic-beta': 'context-1m-2025-08-07', 'anthropic-version': '2023-06-01' }),
  callerPays: false,
  caller: { keyId: 'k' },
  session: 's',
  policies: { ...DEFAULT_POLICIES, reasoning: 'strip' },
  unsupported: 'auto',
};

const ROWS: TargetRows = {
  outputLimit: (own) => Math.min(own ?? 900, 900),
  tries: [{ kind: 'without_reasoning' }, { kind: 'without_summary' }],
  apis: REQUEST.context.upstreams.learned.apis,
  learnedOf: () => FINDINGS.map((finding) => ({ finding, conditions: [] })),
  now: 0,
};

const GRANT: MemoryGrant = {
  revoked: new Promise(() => {}),
  markReceived: () => {},
  startWork: async () => {},
  pause: async () => {},
  endWork: () => {},
  release: () => {},
};

/** Null: the client's protocol refuses the body. */
function bodyOf(client: ClientProtocol<never>, body: JsonObject): ReplayedBody | null {
  const read = client.readRequest(body);
  if (read.kind === 'error') return null;
  const { fields, turns, thinking, dropped, translationError } = read.value;
  const { passthrough = null, fieldNames, optionalFields } = client;
  return {
    ...{ fields, turns, thinking, dropped, translationError },
    clientBody: body,
    clientBodyBytes: JSON.stringify(body).length,
    client: { passthrough, fieldNames, optionalFields },
    grant: GRANT,
  };
}

const geminiRequest = (random: () => number): JsonObject => ({
  contents: [
    { role: 'user', parts: [{ text: 'Hi' }] },
    { role: 'model', parts: [{ functionCall: { name: 'read', args: { path: 'a' } } }] },
    { role: 'user', parts: [{ functionResponse: { name: 'read', response: { text: 'A' } } }] },
  ],
  tools: [{ functionDeclarations: [{ name: 'read', parametersJsonSchema: { type: 'object' } }] }],
  generationConfig: {
    maxOutputTokens: 2000,
    temperature: 0.7,
    thinkingConfig: random() < 0.5 ? { thinkingBudget: 4096 } : { thinkingLevel: 'high' },
  },
});

const CLIENTS = [
  ['chat', chat, chatRequest],
  ['messages', messages, messagesRequest],
  ['responses', responsesClient(null), responsesRequest],
  ['gemini', gemini, geminiRequest],
] as const;

test.each(CLIENTS)(
  `R10 a request of %s to one target is pure: of frozen inputs it is written twice with the same bytes, from seed ${SEED}`,
  async (_, client, make) => {
    const random = seeded(SEED);
    let sent = 0;
    for (const address of ADDRESSES) {
      const [target] = targetsOf([address], { settings });
      for (let i = 0; i < sampleOf(1, 10); i++) {
        const body = bodyOf(client as ClientProtocol<never>, { ...make(random), model: address });
        if (body === null) continue;
        const inputs = frozen({ body, target, request: REQUEST, rows: ROWS });
        const before = JSON.stringify(body);
        const pauses: number[] = [];
        const write = async () => {
          let paused = 0;
          const pause = async () => void paused++;
          const { body: held, target: to, rows, request } = inputs;
          const written = await writeTargetRequest(held, to, rows, request, pause);
          pauses.push(paused);
          // `chatBody` is computed when it is read.
          return JSON.stringify(written);
        };
        const first = await write();
        expect(await write()).toBe(first);
        expect(JSON.stringify(inputs.body)).toBe(before);
        expect(pauses[1]).toBe(pauses[0]);
        if (first.startsWith('{"kind":"ok"')) sent++;
      }
    }
    expect([...REQUEST.headers]).toHaveLength(2);
    expect(sent).toBeGreaterThan(ADDRESSES.length / 3);
  },
);
