/**
 * Simulates Gemini's native API (2026-11-22): events with CRLF and without `[DONE]`, usage on each, calls in one piece,
 * signatures, thoughts on request. A word of the prompt selects the behaviour of a recording: `plays:two-finishes` and
 * the others below.
 *
 * Tokens (completion): gemini-3-flash-preview 14 (6 of them thoughts), gemini-3.5-flash-lite 8, gemini-3.8-flash 7.
 */

import { geminiEmbeddings, geminiEmbeddingsProblem } from './embeddings.ts';
import { FIELDS, geminiProblem, signatureOf } from './gemini-check.ts';
import { asChat } from './gemini-conversation.ts';
import {
  compact,
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  objectsOf,
  spaced,
  textOf,
} from './json.ts';
import type { Call, Operation, Refusal, Scene, WireEvent } from './scene.ts';
import { contentText, costOf, type Piece, type Script, scriptFor, wholeCalls, wordsOf } from './script.ts';

const BASE = '/gemini/v1beta/models';

const ANSWERS: Readonly<Record<string, readonly Piece[]>> = {
  'gemini-3-flash-preview': [
    ...wordsOf('reasoning', 'Water first, then gates, then words.'),
    ...wordsOf('text', 'The gate opens; the café’s basin follows, slowly.'),
  ],
  'gemini-3.5-flash-lite': wordsOf('text', 'A lighter weir, though it holds as well.'),
  'gemini-3.8-flash': wordsOf('text', 'Newest of the weirs, and the quickest.'),
};

const STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
};

const OPERATIONS: Readonly<Record<string, Operation>> = {
  countTokens: 'count',
  batchEmbedContents: 'embeddings',
};

export const gemini: Scene = {
  id: 'gemini',
  routes: { [BASE]: 'models' },
  readPath: (path) => {
    const [, model, method] =
      /^\/gemini\/v1beta\/models\/(.+):(generateContent|streamGenerateContent|countTokens|batchEmbedContents)$/.exec(
        path,
      ) ?? [];
    if (model === undefined) return undefined;
    const operation = OPERATIONS[method ?? ''] ?? 'chat';
    return { model, operation, isStreamed: method === 'streamGenerateContent' };
  },
  keyOf: (headers) => headers['x-goog-api-key'],
  list: () =>
    compact({
      models: [
        ...Object.keys(ANSWERS).map((model) => ({
          name: `models/${model}`,
          supportedGenerationMethods: ['generateContent', 'countTokens'],
        })),
        { name: 'models/gemini-embedding-001', supportedGenerationMethods: ['embedContent'] },
      ],
    }),
  models: Object.keys(ANSWERS),
  comment: 'ping',
  streamError: { message: 'The service is currently unavailable.', code: 503, status: 'UNAVAILABLE' },
  refusal,
  badKey: refusal(400, 'API key not valid. Please pass a valid API key.'),
  check: (call) => check(inCamelCase(call)),
  stream: (call) => stream(inCamelCase(call)),
  object: (given) => {
    const call = inCamelCase(given);
    if (call.operation === 'embeddings') return compact(geminiEmbeddings(call));
    return compact(call.operation === 'count' ? count(call) : object(call));
  },
};

/** Below these keys are names of the client's own. */
const FOREIGN = ['args', 'response', 'properties', 'parametersJsonSchema', 'responseJsonSchema'];

/** The API takes keys in both spellings: R gemini/llm--array-tool-result. */
function inCamelCase(call: Call): Call {
  const known = Object.entries(call.body).map(([key, value]) => {
    const name = inCamel(key);
    // An error says an unknown name as it came.
    return FIELDS.includes(name) ? [name, camel(value ?? null)] : [key, value];
  });
  return { ...call, body: objectOf(Object.fromEntries(known)) };
}

function inCamel(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function camel(value: Json): Json {
  if (Array.isArray(value)) return value.map(camel);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([given, inner]) => {
      const key = inCamel(given);
      return [key, FOREIGN.includes(key) || inner === undefined ? inner : camel(inner)];
    }),
  );
}

/** There is no `retry-after`; the wait is a detail of the error (dcdpr/jp#1061, 2026-09-03). */
function refusal(status: number, message: string): Refusal {
  const wait = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '16.204517938s' };
  const details = status === 429 ? { details: [wait] } : {};
  const error = { code: status, message, status: STATUSES[status] ?? 'INTERNAL', ...details };
  return { status, body: `${JSON.stringify({ error }, null, 2)}\n`, headers: {} };
}

function check(call: Call): Refusal | undefined {
  if (call.operation === 'embeddings') {
    const problem = geminiEmbeddingsProblem(call);
    return problem === undefined ? undefined : refusal(400, problem);
  }
  if (!(call.model in ANSWERS)) {
    const message = `models/${call.model} is not found for API version v1beta, or is not supported for generateContent.`;
    return refusal(
      404,
      `${message} Call ListModels to see the list of available models and their supported methods.`,
    );
  }
  const message = call.operation === 'count' ? countProblem(call) : geminiProblem(call);
  return message === undefined ? undefined : refusal(400, message);
}

/** `countTokens`, of a whole request: https://ai.google.dev/api/tokens (read 2026-11-22). */
function countProblem(call: Call): string | undefined {
  const unknown = Object.keys(call.body).find((key) => !['contents', 'generateContentRequest'].includes(key));
  if (unknown !== undefined)
    return `Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`;
  const counted = countedCall(call);
  if (counted.body.model !== `models/${call.model}`)
    return '* CountTokensRequest.generate_content_request.model: unexpected model name format\n';
  return geminiProblem(counted);
}

function countedCall(call: Call): Call {
  return { ...call, body: objectOf(call.body.generateContentRequest) };
}

function count(call: Call): JsonObject {
  const { prompt } = costOf(asChat(countedCall(call)), []);
  return { totalTokens: prompt, promptTokensDetails: [{ modality: 'TEXT', tokenCount: prompt }] };
}

/** The output's parts in order: thoughts, text word by word, calls, and the signature of a text in a separate part. */
function partsOf(call: Call, script: Script): JsonObject[] {
  const { model, body } = call;
  const shows = objectOf(objectOf(body.generationConfig).thinkingConfig).includeThoughts === true;
  const signs = model.startsWith('gemini-3');
  const words = script.pieces.flatMap((piece): JsonObject[] => {
    if (piece.kind === 'text') return [{ text: piece.text }];
    return piece.kind === 'reasoning' && shows ? [{ text: piece.text, thought: true }] : [];
  });
  const calls = wholeCalls(script).map(({ number, name, arguments: text, index }): JsonObject => {
    const functionCall: JsonObject = { name, args: argsOf(text), ...(signs ? { id: `call${number}` } : {}) };
    return {
      functionCall,
      ...(signs && index === 0 ? { thoughtSignature: signatureOf(functionCall) } : {}),
    };
  });
  const isText = signs && calls.length === 0;
  return [...words, ...calls, ...(isText ? [{ text: '', thoughtSignature: signatureOf(null) }] : [])];
}

function argsOf(text: string): JsonObject {
  const args: unknown = text === '' ? {} : JSON.parse(text);
  return isObject(args) ? args : {};
}

function usageOf(call: Call, script: Script): JsonObject {
  const { prompt, completion, cached, reasoning } = costOf(asChat(call), [script]);
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: completion - reasoning,
    totalTokenCount: prompt + completion,
    ...(cached > 0 ? { cachedContentTokenCount: cached } : {}),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: prompt }],
    ...(reasoning > 0 ? { thoughtsTokenCount: reasoning } : {}),
  };
}

function scriptOf(call: Call): Script {
  return scriptFor(asChat(call), ANSWERS[call.model] ?? []);
}

function head({ model, serial }: Call): JsonObject {
  return { modelVersion: model, responseId: `simR${serial}` };
}

const FINISHES: Readonly<Record<string, string>> = { length: 'MAX_TOKENS' };

function candidate(parts: readonly JsonObject[] | null, finish?: string): JsonObject {
  const content = parts === null ? { role: 'model' } : { parts: [...parts], role: 'model' };
  return { content, ...(finish === undefined ? {} : { finishReason: finish }), index: 0 };
}

function frame(kind: WireEvent['kind'], event: JsonObject): WireEvent {
  return { kind, text: `data: ${spaced(event)}\r\n\r\n` };
}

function* stream(call: Call): Generator<WireEvent> {
  const script = scriptOf(call);
  const usage = usageOf(call, script);
  const parts = partsOf(call, script);
  const play = RECORDED_BEHAVIOURS[/\bplays:([\w-]+)/.exec(questionOf(call))?.[1] ?? ''];
  if (play !== undefined) return yield* play(call, usage);
  const finish = FINISHES[script.finish] ?? 'STOP';
  const isCalling = parts.some((part) => part.functionCall !== undefined);
  for (const [at, part] of parts.entries()) {
    const isLast = at === parts.length - 1 && !isCalling;
    // Each event has the counts up to then.
    const sofar = { ...usage, candidatesTokenCount: Math.min(at + 1, Number(usage.candidatesTokenCount)) };
    const candidates = [candidate([part], isLast ? finish : undefined)];
    yield frame(isLast ? 'finish' : 'piece', {
      candidates,
      usageMetadata: isLast ? usage : sofar,
      ...head(call),
    });
  }
  // R gemini--call-then-empty-stop: the finish comes after the calls, with an empty text.
  if (isCalling || parts.length === 0) {
    const candidates = [candidate([{ text: '' }], finish)];
    yield frame('finish', { candidates, usageMetadata: usage, ...head(call) });
  }
}

function questionOf(call: Call): string {
  return contentText(objectsOf(asChat(call).body.messages).at(-1)?.content);
}

type Behaviour = (call: Call, usage: JsonObject) => Iterable<WireEvent>;

/** The behaviour of recorded streams, named after the recordings in shared/streams. */
const RECORDED_BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  'two-finishes': (call, usageMetadata) => [
    frame('piece', { candidates: [candidate([{ text: 'First.' }], 'STOP')], usageMetadata, ...head(call) }),
    frame('finish', {
      candidates: [candidate([{ text: ' Then more.' }], 'STOP')],
      usageMetadata,
      ...head(call),
    }),
  ],
  'usage-shrinks': (call, usage) => [
    frame('piece', {
      candidates: [candidate([{ text: 'Less' }])],
      usageMetadata: { promptTokenCount: 169, totalTokenCount: 169 },
      ...head(call),
    }),
    frame('finish', {
      candidates: [candidate([{ text: ' it is.' }], 'STOP')],
      usageMetadata: usage,
      ...head(call),
    }),
  ],
  'content-without-parts': (call, usageMetadata) => [
    frame('piece', { candidates: [candidate([{ text: 'Nothing' }])], usageMetadata, ...head(call) }),
    frame('piece', { candidates: [candidate(null)], usageMetadata, ...head(call) }),
    frame('finish', { candidates: [candidate([{ text: ' lost.' }], 'STOP')], usageMetadata, ...head(call) }),
  ],
  'prompt-blocked': (call, { promptTokenCount = 0 }) => [
    frame('finish', {
      promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
      usageMetadata: { promptTokenCount, totalTokenCount: promptTokenCount },
      ...head(call),
    }),
  ],
  'bare-error': (call, usageMetadata) => [
    frame('piece', { candidates: [candidate([{ text: 'Half an' }])], usageMetadata, ...head(call) }),
    { kind: 'piece', text: refusal(503, 'The model is overloaded. Please try again later.').body },
  ],
  malformed: (call, usageMetadata) => [
    frame('finish', {
      candidates: [
        { ...candidate(null, 'MALFORMED_FUNCTION_CALL'), finishMessage: 'Malformed function call: print(' },
      ],
      usageMetadata,
      ...head(call),
    }),
  ],
  other: (call, { promptTokenCount = 0 }) => [
    frame('finish', {
      candidates: [candidate(null, 'OTHER')],
      usageMetadata: { promptTokenCount, totalTokenCount: promptTokenCount },
      ...head(call),
    }),
  ],
  safety: (call, usageMetadata) => [
    frame('finish', { candidates: [candidate([{ text: 'No' }], 'SAFETY')], usageMetadata, ...head(call) }),
  ],
};

function object(call: Call): JsonObject {
  const script = scriptOf(call);
  const finish = FINISHES[script.finish] ?? 'STOP';
  const said = joined(partsOf(call, script));
  return { candidates: [candidate(said, finish)], usageMetadata: usageOf(call, script), ...head(call) };
}

/** A non-streaming response has one part of each kind, with its signature. */
function joined(parts: readonly JsonObject[]): JsonObject[] {
  const all: JsonObject[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    const isSame =
      typeof last?.text === 'string' && typeof part.text === 'string' && last.thought === part.thought;
    if (last !== undefined && isSame)
      all[all.length - 1] = { ...last, ...part, text: textOf(last.text) + textOf(part.text) };
    else all.push(part);
  }
  return all;
}
