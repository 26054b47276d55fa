/** Tests each recorded request of a real provider: an accepted one is sent unchanged, a refused one is fixed or explained. */
import { describe, expect, test } from 'vitest';
import { isObject, type JsonObject } from '../../src/shared/json.ts';
import { classifyRefusal } from '../../src/upstream/errors.ts';
import { type RecordedRequest, readRecordedRequests, requestsNote } from './recorded-requests.ts';
import { writeRequest } from './write-request.ts';

/**
 * The allowed differences of an accepted body, as paths, with their rules: `-` dropped, `+` added, `~` another value. The recorder
 * masked ids of tool calls; they had nine characters when they were sent.
 */
const CHANGES: Readonly<Record<string, readonly string[]>> = {
  // Q4: top-level nulls.
  'deepseek--tool-choice-null.json': ['-tool_choice'],
  'mistral--prompt-cache-key.json': ['-frequency_penalty', '-presence_penalty', '-stop'],
  'together--nulls.json': [
    '-echo',
    '-frequency_penalty',
    '-logit_bias',
    '-logprobs',
    '-max_tokens',
    '-min_p',
    '-n',
    '-presence_penalty',
    '-repetition_penalty',
    '-response_format',
    '-safety_model',
    '-stop',
    '-temperature',
    '-tool_choice',
    '-tools',
    '-top_k',
    '-top_p',
  ],
  // Q3: ids that Mistral refuses.
  'mistral--history-parallel-tools.json': [
    '~messages.0.tool_calls.0.id',
    '~messages.0.tool_calls.1.id',
    '~messages.1.tool_call_id',
    '~messages.2.tool_call_id',
  ],
  'mistral--json-schema-with-tools.json': ['~messages.1.tool_calls.0.id', '~messages.2.tool_call_id'],
  // Q1: the limit's name; U4: usage is asked for in every stream.
  'openai--n3-user-stream.json': ['+max_completion_tokens', '+stream_options', '-max_tokens'],
  'openai--pdf-file-part.json': ['+max_completion_tokens', '-max_tokens'],
  'openai--web-search-options-stream.json': ['+stream_options'],
  // Q2: both names at an unknown server.
  'vercel-gateway--details-back.json': ['+messages.2.reasoning_content'],
};

/** Refused requests that Weir fixes (Q1). */
const MENDED: Readonly<Record<string, readonly string[]>> = {
  'openai--refused-max-tokens.json': ['max_tokens'],
};

/** Refusals that only the provider can decide: the status, and text of the provider's message that the client receives. */
const REFUSALS: Readonly<Record<string, readonly [status: number, text: string]>> = {
  'deepseek--refused-audio.json': [400, 'unknown variant'],
  'deepseek--refused-image.json': [400, 'unknown variant `image_url`'],
  'deepseek--refused-required-tool-thinking.json': [400, 'Thinking mode does not support this tool_choice'],
  'deepseek--refused-unknown-model.json': [400, 'The supported API model names are'],
  'doubleword--refused-temperature.json': [400, 'Temperature must be between 0 and 2'],
  'groq--refused-required-no-call.json': [400, 'Tool choice is required, but model did not call a tool'],
  'groq--refused-tool-use-failed.json': [400, 'Tool call validation failed'],
  'llamacpp--refused-context.json': [400, 'exceeds the available context size (512 tokens)'],
  'mistral--refused-bad-key.json': [502, "refused this deployment's credential"],
  'mistral--refused-logprobs.json': [400, 'Logprobs are not enabled for this model'],
  'mistral--refused-unknown-model.json': [400, 'Invalid model'],
  'openai--refused-developer-role.json': [400, "'messages[0].role' does not support 'developer'"],
  'openai--refused-empty-messages.json': [400, "'messages'"],
  'openai--refused-temperature.json': [400, 'temperature'],
  'openai--refused-web-search-options.json': [400, 'Web search options not supported'],
  'openrouter--refused-unknown-model.json': [400, 'is not a valid model ID'],
  'xai--refused-bad-key.json': [502, "refused this deployment's credential"],
};

const recorded = readRecordedRequests();
const accepted = recorded.filter(({ refusal }) => refusal === null);
const refused = recorded.filter(({ refusal }) => refusal !== null);

function send({ provider, route, body }: RecordedRequest): JsonObject {
  const endpoint = provider.endpoints[route];
  if (endpoint === undefined) throw new Error(`${provider.id} has no ${route}`);
  const model = String(body.model ?? body.agent_id ?? '');
  const options = {
    model,
    provider: provider.name,
    providerId: provider.id,
    unsupported: 'auto',
    promptCache: 'off',
  } as const;
  const rewritten = writeRequest(endpoint.request, { fields: body, turns: null }, options);
  if (rewritten.kind === 'error') throw new Error(rewritten.error.message);
  expect([...rewritten.value.dropped, ...rewritten.value.changed]).toEqual([]);
  return rewritten.value.body;
}

/** Every path at which two bodies differ: `-` is missing from the second, `+` from the first, `~` has another value. */
function changes(before: unknown, after: unknown, path = ''): string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const [a, b] = [entriesOf(before), entriesOf(after)];
  if (a === undefined || b === undefined) return [`~${path}`];
  return [...new Set([...a.keys(), ...b.keys()])].flatMap((key) => {
    const inner = path === '' ? key : `${path}.${key}`;
    if (!b.has(key)) return [`-${inner}`];
    return a.has(key) ? changes(a.get(key), b.get(key), inner) : [`+${inner}`];
  });
}

function entriesOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (Array.isArray(value)) return new Map(value.map((item: unknown, i) => [String(i), item]));
  return isObject(value) ? new Map(Object.entries(value)) : undefined;
}

describe.skipIf(requestsNote !== '')(`recorded requests${requestsNote}`, () => {
  test('every file is in one of the tables or is sent unchanged', () => {
    const names = recorded.map(({ name }) => name);
    const listed = [...Object.keys(CHANGES), ...Object.keys(MENDED), ...Object.keys(REFUSALS)];
    expect(listed.filter((name) => !names.includes(name))).toEqual([]);
    expect(refused.map(({ name }) => name)).toEqual(
      [...Object.keys(MENDED), ...Object.keys(REFUSALS)].sort(),
    );
  });

  test.each(accepted)('Q1 Q4 $name: sent unchanged, except for the listed differences', (request) => {
    expect(changes(request.body, send(request)).sort()).toEqual(CHANGES[request.name] ?? []);
  });

  test.each(refused.filter(({ name }) => name in MENDED))(
    'Q1 $name: leaves without what it was refused for',
    (request) => {
      const sent = send(request);
      for (const field of MENDED[request.name] ?? []) expect(sent).not.toHaveProperty(field);
    },
  );

  test.each(refused.filter(({ name }) => name in REFUSALS))(
    'Q6 Q10 $name: its refusal reaches the caller, readable',
    ({ name, provider, refusal }) => {
      const [status, text] = REFUSALS[name] ?? [0, ''];
      const upstream = {
        name: provider.name,
        secret: 'sk-deployment',
        refusals: provider.refusals,
        callerPays: false,
      };
      const error = classifyRefusal(refusal ?? { status: 0, body: '' }, upstream);
      expect(error.status).toBe(status);
      expect(error.message).toContain(text);
      expect(error.code).not.toMatch(/^\d{3}$/);
    },
  );
});
