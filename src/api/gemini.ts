/** The routes of Gemini's clients: the method follows the last `:` of the path, and the path names the model. */
import { apiError } from '../canonical/error.ts';
import type { CompletionContext } from '../completion/admission.ts';
import { handleCompletion } from '../completion/handler.ts';
import type { RequestContext } from '../http/context.ts';
import { clientError } from '../http/respond.ts';
import { gemini, geminiClient } from '../protocols/gemini/client.ts';
import { formOf } from '../protocols/gemini/client-form.ts';
import { GOOGLE_PROVIDERS } from '../providers/gemini.ts';
import { findAlias } from '../routing/targets.ts';
import { MAX_NAME_CHARS } from '../shared/limits.ts';

type ModelMethod = (request: Request, context: CompletionContext, model: string) => Promise<Response>;

const METHODS: ReadonlyMap<string, ModelMethod> = new Map<string, ModelMethod>([
  ['generateContent', generate(false)],
  ['streamGenerateContent', generate(true)],
]);

function generate(isStreamed: boolean): ModelMethod {
  return (request, context, model) => {
    const client = geminiClient(formOf(isStreamed, new URL(request.url).searchParams));
    return handleCompletion(request, { route: 'chat', client }, context, { model });
  };
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
): Promise<Response> {
  const at = path.lastIndexOf(':');
  const call = at < 0 ? undefined : METHODS.get(path.slice(at + 1));
  if (call !== undefined) {
    const model = path.slice(0, at);
    return await call(request, context, publisher === null ? model : vertexModel(publisher, model, context));
  }
  const method = at < 0 ? 'no method' : `no method ${path.slice(at + 1).slice(0, MAX_NAME_CHARS)}`;
  const message = `There is ${method} of models here: the path ends in ${[...METHODS.keys()].map((name) => `:${name}`).join(', ')}`;
  return clientError(gemini, context, apiError('not_found', message));
}

/** Google's models are those of Vertex AI where it is set up. A client in this mode sends `<publisher>/<model>` as the path of another. */
function vertexModel(publisher: string, model: string, { settings }: RequestContext): string {
  const { aliases, providers } = settings;
  if (publisher !== 'google') return `${publisher}/${model}`;
  if (findAlias(aliases, model, providers) !== undefined) return model;
  const provider = GOOGLE_PROVIDERS.find((id) => providers.has(id)) ?? GOOGLE_PROVIDERS[1];
  return `${provider}/${model}`;
}

/** Google's newer API, of which clients of both exist. */
export function refuseInteractions(_: Request, context: RequestContext): Response {
  const message =
    'This gateway has no Interactions API: send the whole conversation to models/<model>:generateContent or :streamGenerateContent';
  return clientError(gemini, context, apiError('not_found', message));
}
