/**
 * Simulates AWS Bedrock's two hosts, Runtime and Mantle, with the models of `openai`, `anthropic` and `compatible`
 * behind Bedrock's names, and those of Converse (`converse.ts`). It refuses what Bedrock refuses: a model below another
 * path (ENTERPILOT/GoModel#544, 2026-07-17), a bare name at Runtime, an unknown name, a bad key (recorded:
 * bedrock--refused-*), and a signature that AWS's own package does not make (`aws.ts`). Each response counts its calls
 * from `call_0`, events of Responses have `data:` before `event:` or no `event:` at all, and encrypted reasoning begins
 * with `rsn_` (recorded: bedrock-mantle--*, 2026-07).
 *
 * Tokens (completion): as the models behind the names.
 */
import { anthropic } from './anthropic.ts';
import { awsRefusal, hasSignature, SIMULATED_AWS } from './aws.ts';
import { compatible } from './compatible.ts';
import { CONVERSE_MODELS, CONVERSE_PATH, checkConverse, converseObject, streamConverse } from './converse.ts';
import { type JsonObject, objectsOf } from './json.ts';
import { openai } from './openai.ts';
import type { RecordedRequest } from './recorded-request.ts';
import { chatOf, checkResponses, responsesObject, responsesStream } from './responses.ts';
import {
  type Call,
  type Operation,
  openaiRefusal,
  type Refusal,
  type Scene,
  type WireEvent,
} from './scene.ts';
import { scriptFor, wordsOf } from './script.ts';

interface Model {
  readonly inner: Scene;
  /** Its name there. */
  readonly name: string;
  /** The host and the path where it is served. */
  readonly door: string;
}

const RUNTIME = '/bedrock/runtime';
const MANTLE = '/bedrock/mantle';

const MODELS: Readonly<Record<string, Model>> = {
  'us.anthropic.claude-haiku-4-5-20251001-v1:0': {
    inner: anthropic,
    name: 'claude-haiku-4-5',
    door: `${RUNTIME}/anthropic/v1`,
  },
  'global.anthropic.claude-opus-5-5': {
    inner: anthropic,
    name: 'claude-opus-5-5',
    door: `${RUNTIME}/anthropic/v1`,
  },
  'anthropic.claude-sonnet-5': { inner: anthropic, name: 'claude-sonnet-5', door: `${MANTLE}/anthropic/v1` },
  'us.openai.gpt-6.1-terra': { inner: openai, name: 'gpt-6.1-terra', door: `${RUNTIME}/openai/v1` },
  'openai.gpt-6.1-terra': { inner: openai, name: 'gpt-6.1-terra', door: `${MANTLE}/openai/v1` },
  'openai.gpt-oss-20b': { inner: compatible, name: 'openai/gpt-oss-20b', door: `${MANTLE}/v1` },
  'qwen.qwen3-32b': { inner: compatible, name: 'Qwen/Qwen3.8-27B', door: `${MANTLE}/v1` },
  // A model that has moved since its path was known here.
  'writer.palmyra-9': { inner: compatible, name: 'llama-3.3-70b-versatile', door: `${MANTLE}/openai/v1` },
};

const ROUTES: Readonly<Record<string, Operation>> = {
  ...routesOf(`${RUNTIME}/openai/v1`),
  ...routesOf(`${RUNTIME}/v1`),
  ...routesOf(`${MANTLE}/openai/v1`),
  ...routesOf(`${MANTLE}/v1`),
  [`${MANTLE}/v1/models`]: 'models',
  [`${RUNTIME}/anthropic/v1/messages`]: 'chat',
  [`${MANTLE}/anthropic/v1/messages`]: 'chat',
};

function routesOf(base: string): Record<string, Operation> {
  return { [`${base}/chat/completions`]: 'chat', [`${base}/responses`]: 'responses' };
}

export const bedrock: Scene = {
  id: 'bedrock',
  routes: ROUTES,
  readPath: (path) => {
    const [, model, operation] = CONVERSE_PATH.exec(path) ?? [];
    if (model === undefined) return undefined;
    const isStreamed = operation === 'converse-stream';
    return {
      ...{ model: decodeURIComponent(model), isStreamed },
      operation: operation === 'count-tokens' ? 'count' : 'chat',
    };
  },
  models: [...Object.keys(MODELS), ...CONVERSE_MODELS],
  comment: 'ping',
  streamError: { message: 'The system encountered an unexpected error', type: 'server_error', code: null },
  refusal: (status, message) => ({ status, body: JSON.stringify({ message }) }),
  badKey: {
    status: 403,
    body: JSON.stringify({ message: 'Authentication failed: Please make sure your API Key is valid.' }),
  },
  judgeSignature,
  check,
  *stream(call) {
    if (CONVERSE_PATH.test(call.path)) return yield* streamConverse(call);
    const model = MODELS[call.model];
    if (model === undefined) return;
    for (const event of innerStream(call, model)) yield written(event, call, model);
  },
  object: (call) => {
    if (CONVERSE_PATH.test(call.path)) return converseObject(call);
    const model = MODELS[call.model];
    return model === undefined ? '{}' : renamed(innerObject(call, model), call, model);
  },
};

const IDENTITIES = new Map([[SIMULATED_AWS.accessKeyId, { secret: SIMULATED_AWS.secretAccessKey }]]);

/** In the place of an API key. Each host has a service of its own. */
async function judgeSignature(
  { method, path, headers, text }: RecordedRequest,
  origin: string,
): Promise<Refusal | 'accepted' | 'unsigned'> {
  if (!hasSignature(headers.authorization)) return 'unsigned';
  const lines = Object.entries(headers).map(([name, value]) => [name, String(value)]);
  const body = method === 'GET' ? null : text;
  const refused = await awsRefusal(
    new URL(path, origin).href,
    { method, headers: Object.fromEntries(lines), body },
    {
      service: path.startsWith(RUNTIME) ? 'bedrock' : 'bedrock-mantle',
      ...{ region: SIMULATED_AWS.region, identities: IDENTITIES, now: Date.now() },
    },
  );
  return refused === null ? 'accepted' : bedrock.refusal(403, refused.slice(refused.indexOf(': ') + 2));
}

function check(call: Call): Refusal | undefined {
  if (CONVERSE_PATH.test(call.path)) return checkConverse(call);
  const model = MODELS[call.model];
  const isRuntime = call.path.startsWith(RUNTIME);
  const refuse = (status: number, message: string) =>
    openaiRefusal(status, { message, type: 'invalid_request_error' });
  if (model === undefined) return bedrock.refusal(400, 'The provided model identifier is invalid.');
  if (isRuntime && model.door.startsWith(MANTLE)) {
    const message = `Invocation of model ID ${call.model} with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.`;
    return bedrock.refusal(400, message);
  }
  if (!call.path.startsWith(`${model.door}/`))
    return refuse(400, `model \`${call.model}\` isn't supported on this route`);
  if (call.operation === 'responses' && model.inner === compatible) {
    if (!call.model.startsWith('openai.'))
      return refuse(404, `model \`${call.model}\` does not support the Responses API`);
    return checkResponses(call, (status, message) => refuse(status, message));
  }
  if (foreignReasoning(call)) return refuse(400, 'The encrypted content could not be verified.');
  return model.inner.check(innerCall(call, model));
}

/** Encrypted reasoning is bound to the account's key. */
const OWN_REASONING = 'rsn_';

function foreignReasoning({ body }: Call): boolean {
  return objectsOf(body.input).some(
    ({ encrypted_content: data }) => typeof data === 'string' && !data.startsWith(OWN_REASONING),
  );
}

function innerCall(call: Call, { name }: Model): Call {
  const input = objectsOf(call.body.input).map((item) => {
    const { encrypted_content: data } = item;
    return typeof data === 'string' ? { ...item, encrypted_content: data.slice(OWN_REASONING.length) } : item;
  });
  const body: JsonObject = { ...call.body, model: name, ...(input.length > 0 && { input }) };
  return { ...call, model: name, body };
}

function innerStream(call: Call, model: Model): Iterable<WireEvent> {
  const inner = innerCall(call, model);
  return isOpenResponses(call, model)
    ? responsesStream(inner, openResponses(inner))
    : model.inner.stream(inner);
}

function innerObject(call: Call, model: Model): string {
  const inner = innerCall(call, model);
  if (!isOpenResponses(call, model)) return model.inner.object(inner);
  return JSON.stringify(responsesObject(inner, openResponses(inner)));
}

function isOpenResponses({ operation }: Call, { inner }: Model): boolean {
  return operation === 'responses' && inner === compatible;
}

function openResponses(call: Call) {
  const words = [
    ...wordsOf('reasoning', 'They ask for the shortest path; count edges.'),
    ...wordsOf('text', 'Three edges, through the second lock.'),
  ];
  const callId = (number: number) => `call_836db14dc7486${String(number).padStart(3, '0')}`;
  return {
    model: call.model,
    script: scriptFor(chatOf(call), words),
    hidden: 0,
    form: 'deepseek',
    callId,
  } as const;
}

/** An event as Bedrock writes it. */
function written(event: WireEvent, call: Call, model: Model): WireEvent {
  const text = renamed(event.text, call, model);
  if (call.operation !== 'responses') return { ...event, text };
  const [, name = '', data = ''] = /^(event: .*\n)(data: .*\n)\n$/.exec(text) ?? [];
  if (name === '') return { ...event, text };
  return { ...event, text: model.inner === openai ? `${data}${name}\n` : `${data}\n` };
}

/** Its own name of the model, ids of calls and form of encrypted reasoning. */
function renamed(text: string, call: Call, { inner, name }: Model): string {
  const named = text.replaceAll(JSON.stringify(name), JSON.stringify(call.model));
  if (inner !== openai) return named;
  return named
    .replaceAll(/"call_sim0*(\d+)"/g, (_, number: string) => `"call_${Number(number)}"`)
    .replaceAll('"encrypted_content":"', `"encrypted_content":"${OWN_REASONING}`);
}
