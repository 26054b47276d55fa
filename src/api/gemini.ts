/** The routes of Gemini's clients: the method follows the last `:` of the path, and the path names the model. */
import { apiError } from '../canonical/error.ts';
import type { CompletionContext } from '../completion/admission.ts';
import { handleCompletion } from '../completion/handler.ts';
import type { RequestContext } from '../http/context.ts';
import { type Answer, type Refused, refused } from '../http/respond.ts';
import { gemini, geminiClient } from '../protocols/gemini/client.ts';
import { geminiBatchEmbedding, geminiEmbedding } from '../protocols/gemini/client-embeddings.ts';
import { formOf } from '../protocols/gemini/client-form.ts';
import { inCamelCase } from '../protocols/gemini/enums.ts';
import { GOOGLE_PROVIDERS } from '../providers/gemini.ts';
import { findAlias } from '../routing/targets.ts';
import { providerOfBareName } from '../settings/bare-models.ts';
import { isObject, type JsonObject } from '../shared/json.ts';
import { MAX_NAME_CHARS } from '../shared/limits.ts';
import { handleCountTokens } from './count-tokens.ts';

type ModelMethod = (request: Request, context: CompletionContext, model: string) => Promise<Answer>;

const METHODS: ReadonlyMap<string, ModelMethod> = new Map<string, ModelMethod>([
  ['generateContent', generate(false)],
  ['streamGenerateContent', generate(true)],
  ['countTokens', countTokens],
  ['embedContent', embed(geminiEmbedding)],
  ['batchEmbedContents', embed(geminiBatchEmbedding)],
]);

function generate(isStreamed: boolean): ModelMethod {
  return (request, context, model) => {
    const client = geminiClient(formOf(isStreamed, new URL(request.url).searchParams));
    return handleCompletion(request, { route: 'chat', client }, context, { model });
  };
}

/** The SDKs of Google wrap a whole request, and else send its contents alone. */
const COUNTED = {
  ...gemini,
  unwrapped: (body: JsonObject) => {
    const { generateContentRequest: wrapped, ...rest } = inCamelCase(body);
    return isObject(wrapped) ? { ...rest, ...wrapped } : body;
  },
};

function countTokens(request: Request, context: CompletionContext, model: string): Promise<Answer> {
  const view = (totalTokens: number) => ({ totalTokens });
  return handleCountTokens(request, { route: 'chat', client: COUNTED }, context, view, { model });
}

function embed(client: typeof geminiEmbedding): ModelMethod {
  return (request, context, model) =>
    handleCompletion(request, { route: 'embeddings', client }, context, { model });
}

/**
 * Calls the method of a path.
 * @param path the part of the path that has the model and the method, decoded: `deepseek/deepseek-chat:generateContent`
 * @param publisher that of a path of Vertex AI; null: the path is of Gemini's own API
 */
export async function handleGeminiCall(
  request: Request,
  context: CompletionContext,
  path: string,
  publisher: string | null = null,
): Promise<Answer> {
  const at = path.lastIndexOf(':');
  const call = at < 0 ? undefined : METHODS.get(path.slice(at + 1));
  if (call !== undefined) {
    const model = path.slice(0, at);
    return await call(request, context, addressOf(model, publisher, context));
  }
  const method = at < 0 ? 'no method' : `no method ${path.slice(at + 1).slice(0, MAX_NAME_CHARS)}`;
  const message = `There is ${method} of models here: the path ends in ${[...METHODS.keys()].map((name) => `:${name}`).join(', ')}`;
  return refused(gemini, apiError('not_found', message));
}

/**
 * A name of no other maker is Google's own here. Its models are those of Vertex AI by the paths of its clients, where
 * it is set up. A client in that mode has the provider of another name as the publisher.
 */
function addressOf(model: string, publisher: string | null, { settings }: RequestContext): string {
  const { aliases, providers } = settings;
  if (publisher !== null && publisher !== 'google') return `${publisher}/${model}`;
  if (findAlias(aliases, model, providers) !== undefined) return model;
  const [vertex, own] = GOOGLE_PROVIDERS;
  if (publisher !== null) return `${providers.has(vertex) ? vertex : own}/${model}`;
  const isUnknown = !model.includes('/') && providerOfBareName(model, settings) === null;
  return isUnknown && providers.has(own) ? `${own}/${model}` : model;
}

/** Google's newer API, of which clients of both exist. */
export function refuseInteractions(): Refused {
  const message =
    'This gateway has no Interactions API: send the whole conversation to models/<model>:generateContent or :streamGenerateContent';
  return refused(gemini, apiError('not_found', message));
}
