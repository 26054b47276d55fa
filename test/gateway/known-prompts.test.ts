/** The prompt's part of a reservation in a growing session: by what the provider has counted before. */
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf } from '../../tools/simulator/json.ts';
import { seeded } from '../random.ts';
import { LimitedGateway } from './limited-gateway.ts';

const MAX_TOKENS = 1000;
const STEPS = 12;
/** As large as the steps of a session that grows to 400 KB in 40 requests. */
const STEP_BYTES = 8900;

/** Words and signs: every token has at least one byte, as with all tokenizers. About 3.6 bytes each. */
function count(body: JsonObject): number {
  const { max_tokens: _, stream: __, metadata: ___, ...prompt } = body;
  return (JSON.stringify(prompt).match(/[A-Za-z]{1,6}|[0-9]{1,3}|\s+|[^A-Za-z0-9\s]{1,3}/g) ?? []).length;
}

interface Sent {
  readonly counted: number;
  /** The prompt's part of the reservation. */
  readonly reserved: number;
}

/** A gateway whose provider counts prompts, with what it counted and what was reserved for each request. */
function countingGateway(settings: JsonObject = {}, counted: (body: JsonObject) => number = count) {
  const sent: Sent[] = [];
  const gateway: LimitedGateway = new LimitedGateway(
    { ANTHROPIC_API_KEY: 'k', ...settings },
    {
      fetch: async (_, init) => {
        const body = decodeObject(String(init?.body)) ?? {};
        const [row] = gateway.sql.exec<{ tokens: number }>('SELECT tokens FROM reservations').toArray();
        const tokens = counted(body);
        sent.push({ counted: tokens, reserved: (row?.tokens ?? 0) - MAX_TOKENS });
        return Response.json({
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: body.model,
          content: [{ type: 'text', text: 'Done' }],
          stop_reason: 'end_turn',
          usage: { input_tokens: 10, cache_read_input_tokens: tokens - 10, output_tokens: 5 },
        });
      },
    },
  );
  return { gateway, sent };
}

const random = seeded(1);
const WORDS = [
  'const ',
  'return ',
  'request',
  'the ',
  'budget',
  '(value)',
  ' = ',
  '\n',
  'import ',
  '42',
  ';',
];
function text(bytes: number): string {
  let made = '';
  while (made.length < bytes) made += WORDS[Math.floor(random() * WORDS.length)];
  return made;
}

const TOOLS = Array.from({ length: 20 }, (_, i) => ({
  name: `tool_${i}`,
  description: text(1200),
  input_schema: { type: 'object', properties: { path: { type: 'string', description: text(100) } } },
}));
const SYSTEM = [{ type: 'text', text: text(12_000), cache_control: { type: 'ephemeral' } }];

/** As Claude Code sends it: the mark of the cache is at the last message. */
function session(steps: number, results: readonly string[]): JsonObject {
  const messages: JsonObject[] = [{ role: 'user', content: [{ type: 'text', text: 'Fix the test' }] }];
  for (let i = 0; i < steps; i++) {
    const id = `toolu_${i}`;
    messages.push({
      role: 'assistant',
      content: [{ type: 'tool_use', id, name: 'tool_1', input: { path: 'a' } }],
    });
    messages.push({
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: id, content: results[i] ?? '' }],
    });
  }
  const last = objectOf(messages.at(-1));
  const content = (last.content as JsonObject[]).map((part) => ({
    ...part,
    cache_control: { type: 'ephemeral' },
  }));
  const marked = [...messages.slice(0, -1), { ...last, content }];
  const metadata = { user_id: `user_1_session_${steps}` };
  return {
    model: 'anthropic/claude-haiku-4-5',
    max_tokens: MAX_TOKENS,
    system: SYSTEM,
    tools: TOOLS,
    metadata,
    messages: marked,
  };
}

const RESULTS = Array.from({ length: STEPS }, () => text(STEP_BYTES));

async function send({ gateway }: { gateway: LimitedGateway }, token: string, body: JsonObject) {
  const response = await gateway.post('/v1/messages', token, body);
  expect(await response.text()).toContain('Done');
  await gateway.idle();
}

test('G5 a Messages response under a budget says how much of it is spent, and a chat response does not', async () => {
  const { gateway } = countingGateway();
  const token = await gateway.key({ budget: { tokens: 1e9, per: 'day' } });
  const messages = await gateway.post('/v1/messages', token, session(1, RESULTS));
  expect(messages.headers.get('anthropic-ratelimit-unified-status')).toBe('allowed');
  await messages.text();
  const chat = await gateway.ask(token, { model: 'anthropic/claude-haiku-4-5' });
  expect([...chat.headers.keys()].filter((name) => name.includes('unified'))).toEqual([]);
  await chat.text();
});

describe('G2 the reserved prompt of a session', () => {
  test('that grows by 9 KB in each of 12 requests: never below what is counted, and 1.6 times it at most in the median', async () => {
    const counting = countingGateway();
    const token = await counting.gateway.key({ budget: { tokens: 1e9 } });
    for (let step = 0; step < STEPS; step++) await send(counting, token, session(step, RESULTS));
    for (const { counted, reserved } of counting.sent) expect(reserved).toBeGreaterThanOrEqual(counted);
    const ratios = counting.sent.slice(1).map(({ counted, reserved }) => reserved / counted);
    const median = ratios.toSorted((a, b) => a - b)[Math.floor(ratios.length / 2)] ?? 0;
    expect(median).toBeLessThanOrEqual(1.6);
    const [first] = counting.sent;
    expect((first?.reserved ?? 0) / (first?.counted ?? 1)).toBeGreaterThan(2);
  });

  test.each<[string, (body: JsonObject) => JsonObject]>([
    ['other tools', (body) => ({ ...body, tools: TOOLS.slice(1) })],
    [
      'an earlier message changed',
      (body) => ({ ...body, messages: session(5, [text(8000), ...RESULTS]).messages }),
    ],
    ['another model', (body) => ({ ...body, model: 'anthropic/claude-sonnet-4-5' })],
    [
      'thinking',
      (body) => ({ ...body, max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 } }),
    ],
  ])('%s: no beginning is known, and the bytes are the bound', async (_, change) => {
    const counting = countingGateway();
    const token = await counting.gateway.key({ budget: { tokens: 1e9 } });
    await send(counting, token, session(4, RESULTS));
    const changed = change(session(5, RESULTS));
    await send(counting, token, changed);
    const [, { counted, reserved } = { counted: 1, reserved: 0 }] = counting.sent;
    expect(reserved / counted).toBeGreaterThan(2);
  });

  test('what the client may change without a change of the prompt: the beginning is known', async () => {
    const counting = countingGateway();
    const token = await counting.gateway.key({ budget: { tokens: 1e9 } });
    await send(counting, token, session(4, RESULTS));
    await send(counting, token, { ...session(4, RESULTS), metadata: { user_id: 'other' }, temperature: 0.5 });
    const [, { counted, reserved } = { counted: 1, reserved: 0 }] = counting.sent;
    expect(reserved / counted).toBeLessThan(1.2);
  });

  test('a budget that only warns: no prompt is hashed', async () => {
    const counting = countingGateway();
    const warned = await counting.gateway.key({ budget: { tokens: 1e9, mode: 'warn' }, rpm: 100 });
    await send(counting, warned, session(4, RESULTS));
    expect(counting.gateway.sql.count('counted')).toBe(0);
  });

  test('a document, which the body does not bound: nothing is remembered', async () => {
    const counting = countingGateway();
    const token = await counting.gateway.key({ budget: { tokens: 1e9 } });
    const body = session(4, RESULTS);
    const source = { type: 'base64', media_type: 'application/pdf', data: 'AAAA' };
    const messages = [
      { role: 'user', content: [{ type: 'document', source }] },
      ...(body.messages as JsonObject[]).slice(1),
    ];
    await send(counting, token, { ...body, messages });
    expect(counting.gateway.sql.count('counted')).toBe(0);
    // The context window of the model.
    expect(counting.sent[0]?.reserved).toBe(200_000);
  });
});
