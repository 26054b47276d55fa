/** Generates a client: its request, how it is sent, when it disconnects, and what the contract requires of the response. */

import type { Expectation } from '../../tools/conformance/contract/check.ts';
import { decodeObject, isObject, type JsonObject } from '../../tools/simulator/json.ts';
import type { RawRequest } from '../hostile/harness/request.ts';
import {
  anyJson,
  anyString,
  chance,
  costlyJson,
  cutUp,
  mutate,
  nearly,
  pick,
  type Random,
  someOf,
} from './random.ts';

export interface Client {
  readonly ask: RawRequest;
  /** A completion request, whose response must keep the contract. Other requests must get a response without an internal error. */
  readonly isCompletion: boolean;
  /** The provider's bytes pass as they are, so a response that it breaks off is broken for the client, too. */
  readonly mayBreak: boolean;
  readonly expectation: Expectation;
}

/** Longer than all timers of the gateway: only a hang reaches it. */
const LIMIT_MS = 60_000;

interface Way {
  readonly path: string;
  readonly provider: string;
  readonly shape: Expectation['shape'];
  readonly nameKey: 'model' | 'agent_id';
}

const WAYS: readonly Way[] = [
  ...['openai', 'openai', 'deepseek', 'mistral', 'xerotier', 'odd'].map(
    (provider): Way => ({ path: '/v1/chat/completions', provider, shape: 'chat', nameKey: 'model' }),
  ),
  { path: '/v1/completions', provider: 'openai', shape: 'text', nameKey: 'model' },
  { path: '/beta/completions', provider: 'deepseek', shape: 'text', nameKey: 'model' },
  { path: '/fim/completions', provider: 'mistral', shape: 'chat', nameKey: 'model' },
  { path: '/v1/agents/completions', provider: 'mistral', shape: 'chat', nameKey: 'agent_id' },
];

export function makeClient(random: Random, number: number): Client {
  if (chance(random, 8)) return otherClient(random);
  if (chance(random, 6)) return embeddingsClient(random, number);
  const way = pick(random, WAYS);
  const text = bodyText(random, way, number);
  const whole: Uint8Array = Buffer.from(text);
  const bytes = chance(random, 5) ? mutate(random, whole) : whole;
  const headers = oddHeaders(random);
  const body = decodeObject(Buffer.from(bytes).toString()) ?? {};
  const path = chance(random, 90)
    ? way.path
    : way.path.replace('/', pick(random, ['//', '/v1/', '/openai/', '/']));
  return {
    ask: {
      head: headOf('POST', path, [...headers, ...lengthHeaders(random, bytes)]),
      ...sendingOf(random, bytes),
    },
    isCompletion: path === way.path,
    mayBreak: false,
    expectation: expectationOf(way, body, headers),
  };
}

function bodyText(random: Random, { nameKey, provider, shape }: Way, number: number): string {
  const name = `"${provider}/f${number}"`;
  if (chance(random, 4)) return `{"${nameKey}":${name},"messages":${costlyJson(random)},"prompt":"x"}`;
  const stream = chance(random, 75) ? 'true' : nearly(random, 'false', 'null');
  const prompt = nearly(random, '"Once"', '["Once"]', anyString(random));
  return someOf(random, [
    [nameKey, chance(random, 99) ? name : anyJson(random)],
    shape === 'chat' && chance(random, 98) ? ['messages', messages(random)] : ['prompt', prompt],
    ['prompt', prompt, 30],
    ['suffix', nearly(random, '"end"'), 20],
    ['stream', stream],
    ['stream_options', nearly(random, '{"include_usage":true}', '{"include_usage":false}', '{}', 'null'), 40],
    ['n', nearly(random, '1', '2', '128'), 10],
    ['max_tokens', nearly(random, '10'), 30],
    ['temperature', nearly(random, '0.5'), 20],
    ['tools', nearly(random, '[{"type":"function","function":{"name":"f","parameters":{}}}]'), 20],
    ['tool_choice', nearly(random, '"auto"', '"required"'), 10],
    ['response_format', nearly(random, '{"type":"json_object"}'), 10],
    ['reasoning_effort', nearly(random, '"low"', '"high"'), 10],
    ['logprobs', nearly(random, 'true', '1'), 10],
    ['metadata', chance(random, 20) ? costlyJson(random) : anyJson(random), 10],
    ['user', anyString(random), 10],
  ]);
}

function messages(random: Random): string {
  const count = chance(random, 95) ? 1 + random(4) : random(2000);
  const list = Array.from({ length: count }, () =>
    nearly(
      random,
      someOf(random, [
        ['role', nearly(random, '"user"', '"assistant"', '"system"', '"tool"')],
        [
          'content',
          nearly(random, '"Hello there"', anyString(random), '[{"type":"text","text":"Hello"}]', 'null'),
        ],
        ['name', anyString(random), 10],
        [
          'tool_calls',
          nearly(random, '[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]'),
          10,
        ],
        ['tool_call_id', anyString(random), 10],
        ['reasoning_content', anyString(random), 10],
      ]),
    ),
  );
  return `[${list.join(',')}]`;
}

const VENDOR_EVENTS = 'x-weir-vendor-events: x_*';

function oddHeaders(random: Random): string[] {
  const headers = ['Content-Type: application/json'];
  if (chance(random, 10)) headers.push(VENDOR_EVENTS);
  if (chance(random, 10))
    headers.push(`x-weir-unsupported: ${pick(random, ['drop', 'refuse', 'auto', 'maybe'])}`);
  if (chance(random, 10)) headers.push('Origin: https://app.example.com');
  if (chance(random, 5))
    headers.push(`Authorization: ${pick(random, ['Bearer weir_x', 'Basic eA==', '', 'Bearer'])}`);
  if (chance(random, 5)) headers.push(`idempotency-key: ${'k'.repeat(random(4000))}`);
  if (chance(random, 5)) headers.push(`traceparent: ${pick(random, ['00-a-b-01', '\xff\xfe', ';;,,'])}`);
  if (chance(random, 3)) headers.push('Expect: 100-continue');
  if (chance(random, 3)) headers.push(`x-junk: ${'j'.repeat(random(8000))}`);
  return headers;
}

function lengthHeaders(random: Random, bytes: Uint8Array): string[] {
  // With a length that is too long, the body stalls. Bytes after a length that is too short are no valid request.
  const difference = chance(random, 1) ? pick(random, [1, 100]) : 0;
  return [`Content-Length: ${bytes.length + difference}`];
}

function headOf(method: string, path: string, headers: readonly string[]): string {
  return `${method} ${path} HTTP/1.1\r\nHost: weir\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`;
}

function sendingOf(random: Random, bytes: Uint8Array): Omit<RawRequest, 'head'> {
  const base = { body: [bytes], pauseMs: 0, limitMs: LIMIT_MS };
  const kind = random(100);
  if (kind < 80) return base;
  if (kind < 83)
    return {
      ...base,
      body: cutUp(random, bytes).slice(0, 20).concat(bytes.subarray(bytes.length)),
      pauseMs: 1 + random(40),
    };
  if (kind < 84) return { ...base, body: [bytes.subarray(0, random(bytes.length))] };
  if (kind < 87)
    return { ...base, body: [bytes.subarray(0, random(bytes.length))], leavesAfterMs: random(300) };
  if (kind < 95) return { ...base, leavesAfterMs: random(chance(random, 50) ? 50 : 2500) };
  return { ...base, leavesAfterBytes: 1 + random(3000) };
}

function expectationOf({ shape, provider }: Way, body: JsonObject, headers: readonly string[]): Expectation {
  const { stream_options } = body;
  const asksUsage = isObject(stream_options) && stream_options.include_usage === true;
  return {
    shape,
    provider,
    usage: asksUsage ? 'end' : 'finish',
    vendorEvents: headers.includes(VENDOR_EVENTS) ? 'pass' : 'strip',
    errorFrames: 'data',
  };
}

const NO_EXPECTATION: Expectation = {
  shape: 'chat',
  provider: '',
  usage: 'finish',
  vendorEvents: 'strip',
  errorFrames: 'data',
};

/** Its upstream answers as that of a chat does, so most responses are no list of vectors. */
function embeddingsClient(random: Random, number: number): Client {
  const provider = pick(random, ['openai', 'mistral', 'odd']);
  const tokens = `[${'7,'.repeat(random(3000))}7]`;
  const text = someOf(random, [
    ['model', `"${provider}/f${number}"`],
    ['input', nearly(random, '"Once"', '["Once","twice"]', tokens, `[${tokens},[1]]`, anyString(random))],
    ['dimensions', nearly(random, '256'), 20],
    ['encoding_format', nearly(random, '"float"', '"base64"'), 40],
    ['user', anyString(random), 10],
    ['stream', 'true', 10],
  ]);
  const bytes = chance(random, 5) ? mutate(random, Buffer.from(text)) : Buffer.from(text);
  const path = pick(random, ['/v1/embeddings', '/embeddings', '/openai/v1/embeddings']);
  const headers = [...oddHeaders(random), ...lengthHeaders(random, bytes)];
  return {
    ask: { head: headOf('POST', path, headers), ...sendingOf(random, bytes) },
    isCompletion: false,
    mayBreak: true,
    expectation: NO_EXPECTATION,
  };
}

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH', 'POST'];
const PATHS = [
  ...[
    '/',
    '/health',
    '/v1/models',
    '/v1/models/x',
    '/models',
    '/v1/usage',
    '/v1/usage?from=2026-01-01&to=2026-12-31&group_by=day,model',
  ],
  ...[
    '/v1/usage?from=x',
    '/admin/keys',
    '/admin/keys/x',
    '/v1/chat/completions',
    '/v1/%2e%2e/health',
    '/%ff',
    '/%',
    '/v1/embeddings',
  ],
  ...[
    `/${'a'.repeat(4000)}`,
    '/v1/models/%00',
    '//health',
    '/openai/deployments/odd/chat/completions',
    '/v1/usage?group_by=day,day',
  ],
];

function otherClient(random: Random): Client {
  const body = Buffer.from(anyJson(random));
  const method = pick(random, METHODS);
  const head = headOf(method, pick(random, PATHS), [...oddHeaders(random), `Content-Length: ${body.length}`]);
  return {
    ask: {
      head,
      body: [body],
      pauseMs: 0,
      limitMs: LIMIT_MS,
      ...(chance(random, 10) ? { leavesAfterMs: random(50) } : {}),
    },
    isCompletion: false,
    mayBreak: false,
    expectation: NO_EXPECTATION,
  };
}
