/** `GET /v1/models`: what this deployment can reach, in OpenAI's list shape, each model by the address that asks for it. */
import { identify, mayUse } from '../auth/caller.ts';
import { isObject, parseJson, readArray, readCount, readText } from '../canonical/json.ts';
import { MAX_ANSWER_BYTES, MODEL_LIST_TIMEOUT_MS } from '../canonical/limits.ts';
import type { ConfiguredProvider } from '../settings.ts';
import type { Fetch } from '../upstream/call.ts';
import { readBounded } from '../upstream/read-bounded.ts';
import type { RequestContext } from './context.ts';
import { errorResponse, jsonResponse } from './respond.ts';

interface Model {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

/** Providers are asked side by side; one that fails or takes too long is left out and logged. */
export async function handleModels(request: Request, context: RequestContext): Promise<Response> {
  const { settings, ports } = context;
  const identified = await identify(settings.auth, request.headers, ports.store, new Date(context.arrivedAt));
  if (identified.kind === 'error') return errorResponse(identified.error);
  const { caller } = identified;
  // A caller's own key belongs to one provider, and no other may see it: only the default one can be asked.
  const asked = [...settings.providers.values()].filter(
    ({ provider }) => caller.credential === null || provider.id === settings.defaultProvider,
  );
  const lists = await Promise.all(
    asked.map(async (configured) => {
      const models = await listModels(ports.fetch, configured, caller.credential ?? configured.apiKey);
      if (models === null) ports.log({ event: 'models_unavailable', provider: configured.provider.id });
      return models ?? [];
    }),
  );
  const aliases = [...settings.aliases].filter(([, address]) => mayUse(caller, address));
  const data = [
    ...aliases.map(([alias]): Model => ({ id: alias, object: 'model', created: 0, owned_by: 'weir' })),
    ...lists.flat().filter((model) => mayUse(caller, model.id)),
  ];
  return jsonResponse({ object: 'list', data });
}

/** A provider's models, or null where it did not list them. */
async function listModels(
  fetch: Fetch,
  { provider, baseUrl }: ConfiguredProvider,
  secret: string,
): Promise<Model[] | null> {
  try {
    const response = await fetch(`${baseUrl}/models`, {
      headers: {
        accept: 'application/json',
        ...(secret === '' ? {} : { authorization: `Bearer ${secret}` }),
      },
      redirect: 'manual',
      signal: AbortSignal.timeout(MODEL_LIST_TIMEOUT_MS),
    });
    const text = response.ok ? await readBounded(response.body, MAX_ANSWER_BYTES) : null;
    const list = parseJson(text ?? '');
    if (!isObject(list)) return null;
    return readArray(list.data).flatMap((model) => {
      const id = isObject(model) ? readText(model.id) : undefined;
      if (!isObject(model) || id === undefined) return [];
      return {
        id: `${provider.id}/${id}`,
        object: 'model',
        created: readCount(model.created) ?? 0,
        owned_by: provider.id,
      };
    });
  } catch {
    return null;
  }
}
