/**
 * Simulates Vertex AI with the models of `gemini`, `anthropic` and `compatible` at its paths: the model of Claude and
 * of Gemini in the path, `anthropic_version` in the body, no `id` of calls and results, no content without a role
 * (../shared/studies/reach.md section 2, 2026-11-28).
 *
 * Tokens (completion): as the models behind the names.
 */
import { anthropic } from './anthropic.ts';
import { compatible } from './compatible.ts';
import { gemini } from './gemini.ts';
import { signatureOf } from './gemini-check.ts';
import { isObject, objectOf, objectsOf, textOf } from './json.ts';
import { type Call, openaiRefusal, type PathWords, type Refusal, type Scene } from './scene.ts';

/** The project and the location of the tests. */
export const PLACE = { VERTEX_PROJECT: 'acme-llm', VERTEX_LOCATION: 'us-central1' } as const;
const OF_PLACE = `projects/${PLACE.VERTEX_PROJECT}/locations/${PLACE.VERTEX_LOCATION}`;
const OPEN = `/vertex/v1/${OF_PLACE}/endpoints/openapi`;

const MODELS: Readonly<Record<string, { readonly inner: Scene; readonly name: string }>> = {
  'gemini-3.8-flash': { inner: gemini, name: 'gemini-3.8-flash' },
  'gemini-3-flash-preview': { inner: gemini, name: 'gemini-3-flash-preview' },
  'claude-haiku-4-5@20251001': { inner: anthropic, name: 'claude-haiku-4-5' },
  'meta/llama-3.3-70b-instruct-maas': { inner: compatible, name: 'llama-3.3-70b-versatile' },
};

const METHODS: Readonly<Record<string, Omit<PathWords, 'model'>>> = {
  generateContent: { isStreamed: false },
  streamGenerateContent: { isStreamed: true },
  rawPredict: { isStreamed: false },
  streamRawPredict: { isStreamed: true },
};

const PATH = new RegExp(
  `^/vertex/(?:v1beta1/${OF_PLACE}/publishers/google|v1/${OF_PLACE}/publishers/anthropic)/models/([^/:]+):(\\w+)$`,
);

export const vertex: Scene = {
  id: 'vertex',
  routes: {
    [`${OPEN}/chat/completions`]: 'chat',
    '/vertex/v1beta1/publishers/google/models': 'models',
  },
  readPath: (path) => {
    const [, model, method = ''] = PATH.exec(path) ?? [];
    const words = METHODS[method];
    return model === undefined || words === undefined ? undefined : { model, ...words };
  },
  keyOf: (headers) => headers['x-goog-api-key'],
  models: Object.keys(MODELS),
  comment: 'ping',
  streamError: { message: 'The service is currently unavailable.', code: 503, status: 'UNAVAILABLE' },
  refusal,
  badKey: refusal(400, 'API key not valid. Please pass a valid API key.'),
  check,
  *stream(call) {
    const inner = innerOf(call);
    for (const event of inner.scene.stream(inner.call)) {
      const data = inner.scene === gemini ? /^data: (\{.*\})(\s*)$/s.exec(event.text) : null;
      yield data === null ? event : { ...event, text: `data: ${withoutIds(data[1] ?? '')}${data[2]}` };
    }
  },
  object: (call) => {
    const inner = innerOf(call);
    const text = inner.scene.object(inner.call);
    return inner.scene === gemini ? withoutIds(text) : text;
  },
  list: () => {
    const publisherModels = Object.keys(MODELS).flatMap((model) =>
      model.startsWith('gemini-') ? { name: `publishers/google/models/${model}` } : [],
    );
    return JSON.stringify({ publisherModels });
  },
};

/** Its calls have no ids, so that a signature is bound to the name alone. */
function withoutIds(text: string): string {
  return JSON.stringify(
    JSON.parse(text, (_, value: unknown) => {
      if (!isObject(value) || !isObject(value.functionCall)) return value;
      const { id: __, ...functionCall } = value.functionCall;
      const thoughtSignature = signatureOf(functionCall);
      return { ...value, functionCall, ...(value.thoughtSignature !== undefined && { thoughtSignature }) };
    }),
  );
}

function refusal(status: number, message: string): Refusal {
  return openaiRefusal(status, { code: status, message, status: 'INVALID_ARGUMENT' });
}

function innerOf(call: Call): { readonly scene: Scene; readonly call: Call } {
  const { inner, name } = MODELS[call.model] ?? { inner: compatible, name: call.model };
  const body = inner === gemini ? call.body : { ...call.body, model: name };
  return { scene: inner, call: { ...call, model: name, body } };
}

function check(call: Call): Refusal | undefined {
  const known = MODELS[call.model];
  if (known === undefined)
    return refusal(404, `Publisher Model \`${OF_PLACE}/publishers/google/models/${call.model}\` not found.`);
  if (known.inner === anthropic) {
    if (call.body.anthropic_version !== 'vertex-2023-10-16')
      return refusal(400, 'anthropic_version: Field required');
    if (call.body.model !== undefined) return refusal(400, 'model: Extra inputs are not permitted');
    const { anthropic_version: _, ...body } = call.body;
    const inner = innerOf({ ...call, body });
    return inner.scene.check({
      ...inner.call,
      headers: { 'anthropic-version': '2023-06-01', ...call.headers },
    });
  }
  const contents = objectsOf(call.body.contents);
  // AI Studio takes contents without a role: BerriAI/litellm#32731, 2026-07-10.
  if (known.inner === gemini && contents.some(({ role }) => (role ?? '') === ''))
    return refusal(400, 'Please use a valid role: user, model.');
  const parts = contents.flatMap(({ parts: ofTurn }) => objectsOf(ofTurn));
  if (parts.some((part) => objectOf(part.functionCall ?? part.functionResponse).id !== undefined))
    return refusal(400, 'Invalid JSON payload received. Unknown name "id": Cannot find field.');
  const isMixed = contents.some(({ parts: ofTurn }) => {
    const results = objectsOf(ofTurn).filter((part) => part.functionResponse !== undefined);
    return results.length > 0 && results.length < objectsOf(ofTurn).length;
  });
  // agentgateway/agentgateway 75b4e6c, crates/llm: Gemini 3. The words are not known.
  if (isMixed && call.model.startsWith('gemini-3'))
    return refusal(400, 'A content with function responses has no other parts.');
  // googleapis/python-genai#2433, 2026: it reads the tier in a header.
  const tier = call.body.serviceTier ?? call.body.service_tier;
  if (tier !== undefined && known.inner === gemini)
    return refusal(
      400,
      `Invalid value at 'service_tier' (type.googleapis.com/google.cloud.aiplatform.v1beta1.ServiceTier), "${textOf(tier)}"`,
    );
  const inner = innerOf(call);
  return inner.scene.check(inner.call);
}
