/**
 * Simulates Cloudflare's `/ai/v1` by REST with the models of `openai`, `anthropic` and `compatible` behind its names:
 * bearer alone, a gateway's name for Workers AI, no `content: null` (cloudflare/ai, packages/workers-ai-provider,
 * 2026-07-30; Cloudflare's page rest-api).
 *
 * Tokens (completion): as the models behind the names.
 */
import { anthropic } from './anthropic.ts';
import { compatible } from './compatible.ts';
import { objectsOf } from './json.ts';
import { openai } from './openai.ts';
import type { Call, Refusal, Scene } from './scene.ts';

/** The account of the tests. */
export const ACCOUNT = '0123456789abcdef0123456789abcdef';
const BASE = `/cloudflare/client/v4/accounts/${ACCOUNT}/ai`;

const MODELS: Readonly<Record<string, { readonly inner: Scene; readonly name: string }>> = {
  '@cf/meta/llama-3.3-70b-instruct-fp8-fast': { inner: compatible, name: 'llama-3.3-70b-versatile' },
  '@cf/openai/gpt-oss-20b': { inner: compatible, name: 'openai/gpt-oss-20b' },
  'openai/gpt-6.1-terra': { inner: openai, name: 'gpt-6.1-terra' },
  'anthropic/claude-haiku-4-5': { inner: anthropic, name: 'claude-haiku-4-5' },
};

export const cloudflare: Scene = {
  id: 'cloudflare',
  routes: {
    [`${BASE}/v1/chat/completions`]: 'chat',
    [`${BASE}/v1/responses`]: 'responses',
    [`${BASE}/v1/messages`]: 'chat',
    [`${BASE}/models/search`]: 'models',
  },
  models: Object.keys(MODELS),
  comment: 'ping',
  streamError: { message: 'Internal error', code: 5006 },
  refusal: (status, message) => envelope(status, status === 401 ? 10_000 : status, message),
  check,
  stream: (call) => innerOf(call).scene.stream(innerOf(call).call),
  object: (call) => innerOf(call).scene.object(innerOf(call).call),
  // Cloudflare's form, and OpenAI's beside it.
  list: () => {
    const names = Object.keys(MODELS);
    const result = names.map((name) => ({ id: name, name, task: { name: 'Text Generation' } }));
    return JSON.stringify({ result, success: true, data: names.map((id) => ({ id })) });
  },
};

/** Cloudflare's API v4. */
function envelope(status: number, code: number, message: string): Refusal {
  return {
    status,
    body: JSON.stringify({ success: false, errors: [{ code, message }], messages: [], result: null }),
  };
}

function innerOf(call: Call): { readonly scene: Scene; readonly call: Call } {
  const { inner, name } = MODELS[call.model] ?? { inner: compatible, name: call.model };
  return { scene: inner, call: { ...call, model: name, body: { ...call.body, model: name } } };
}

function check(call: Call): Refusal | undefined {
  const known = MODELS[call.model];
  if (known === undefined) return envelope(404, 3042, `No such model ${call.model}`);
  if (call.model.startsWith('@') && call.headers['cf-aig-gateway-id'] === undefined)
    return envelope(400, 2001, 'The header cf-aig-gateway-id is required');
  if ((known.inner === anthropic) !== call.path.endsWith('/messages'))
    return envelope(405, 5005, 'This model is not available at this endpoint');
  if (call.operation === 'responses' && known.inner === compatible)
    return envelope(405, 5005, 'This model is not available at this endpoint');
  if (known.inner === compatible && objectsOf(call.body.messages).some(({ content }) => content === null))
    return envelope(400, 5006, "Error: oneOf at '/' not met: '/messages' content must be a string");
  const inner = innerOf(call);
  return inner.scene.check(inner.call);
}
