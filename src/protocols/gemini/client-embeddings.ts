/** Embeddings as Gemini's clients request them: `embedContent` has one content, `batchEmbedContents` a list of requests. */
import { type ApiError, apiError } from '../../canonical/error.ts';
import { ReportedFields } from '../../request-translation/dropped-fields.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  parseJson,
  readArray,
  readCount,
  readText,
} from '../../shared/json.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import type { ClientProtocol, ClientRequest, Passthrough } from '../shared/client-protocol.ts';
import { isPresent } from '../shared/validate-types.ts';
import { gemini } from './client.ts';
import { type GeminiSession, JSON_FORM } from './client-form.ts';
import type { ConvertedEmbeddings } from './embeddings.ts';
import { inCamelCase } from './enums.ts';
import { geminiPassthrough } from './passthrough.ts';
import { modelPath } from './request-writer.ts';

const passthrough: Passthrough = {
  ...geminiPassthrough(JSON_FORM),
  protocol: 'embed_content',
  outputLimitField: null,
  upstreamBody: (body) => body,
  withModel: (body, model) => {
    const named = (one: JsonObject) => (one.model === undefined ? one : { ...one, model: modelPath(model) });
    if (!Array.isArray(body.requests)) return named(body);
    return { ...body, requests: body.requests.map((one: unknown) => (isObject(one) ? named(one) : one)) };
  },
};

/** Its chunk writers are not used: embeddings have no chunks. */
export const geminiEmbedding: ClientProtocol<GeminiSession> = {
  ...gemini,
  passthrough,
  readRequest: (body) => readRequest(body, [body], false),
  embeddings: { passed: passedEmbeddings, converted: (text) => convertEmbeddings(text, false) },
};

export const geminiBatchEmbedding: ClientProtocol<GeminiSession> = {
  ...geminiEmbedding,
  readRequest: (body) => readRequest(body, readArray(body.requests), true),
  embeddings: { passed: passedEmbeddings, converted: (text) => convertEmbeddings(text, true) },
};

/** The fields of one request. Others, such as `taskType`, have no counterpart in OpenAI's form. */
const READ_FIELDS = ['model', 'content', 'outputDimensionality', 'requests'];

function readRequest(
  body: JsonObject,
  requests: readonly unknown[],
  isBatch: boolean,
): Result<ClientRequest<GeminiSession>, ApiError> {
  const all = requests.filter(isObject).map(inCamelCase);
  const path = isBatch ? 'requests' : 'content';
  if (all.length === 0 || all.length < requests.length || !all.every(({ content }) => isPresent(content))) {
    const message = isBatch
      ? 'requests must be a list of objects, each with a content'
      : 'content must be an object with parts';
    return failure(apiError('invalid_request', message, path));
  }
  const dropped = new ReportedFields();
  for (const request of all) {
    for (const [field, value] of Object.entries(request)) {
      if (!READ_FIELDS.includes(field) && isPresent(value)) dropped.add(field);
    }
  }
  const parts = all.map(({ content }) => readArray(objectOf(content).parts).filter(isObject));
  const texts = parts.map((of) => of.map(({ text }) => readText(text) ?? '').join(''));
  const isText = parts.every((of) => of.length > 0 && of.every(({ text }) => typeof text === 'string'));
  const sizes = new Set(all.map(({ outputDimensionality: size }) => size ?? null));
  const [size = null] = sizes;
  const fault = !isText
    ? 'only texts can be embedded'
    : sizes.size > 1
      ? 'outputDimensionality must be the same in all requests'
      : null;
  return ok({
    fields: {
      ...(readText(body.model) === undefined ? {} : { model: body.model }),
      input: isBatch ? texts : texts[0],
      ...(size === null ? {} : { dimensions: size }),
    },
    turns: null,
    dropped: dropped.list,
    translationError: fault === null ? null : apiError('unsupported_parameter', `Here ${fault}`, path),
    isPinned: false,
    session: { showsThoughts: false, hasTools: false },
  });
}

/** Google's own response; null if it has no vectors. */
function passedEmbeddings(text: string): ConvertedEmbeddings | null {
  const response = parseJson(text);
  if (!isObject(response) || !(isObject(response.embedding) || Array.isArray(response.embeddings)))
    return null;
  return { json: text, promptTokens: readCount(objectOf(response.usageMetadata).promptTokenCount) };
}

/** OpenAI's form as Google's; null if it has no vectors. */
function convertEmbeddings(text: string, isBatch: boolean): ConvertedEmbeddings | null {
  const response = parseJson(text);
  const data = isObject(response) ? readArray(response.data).filter(isObject) : [];
  const vectors = data.map(({ embedding }) => ({ values: embedding }));
  if (vectors.length === 0 || !vectors.every(({ values }) => Array.isArray(values))) return null;
  const promptTokens = readCount(objectOf(objectOf(response).usage).prompt_tokens);
  const usage = promptTokens === undefined ? {} : { usageMetadata: { promptTokenCount: promptTokens } };
  const found = isBatch ? { embeddings: vectors } : { embedding: vectors[0] };
  return { json: JSON.stringify({ ...found, ...usage }), promptTokens };
}
