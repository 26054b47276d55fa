/** Fetches the providers' lists of models and caches each for a minute, because fetching one counts against its rate limits. */

import type { ModelsEndpoint, Provider } from '../providers/provider.ts';
import { apiUrl } from '../routing/targets.ts';
import type { ConfiguredProvider } from '../settings/settings.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import { isObject, isWithinJsonBounds, parseJson, readArray, readCount, readText } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { LeaseMemory } from '../stream/memory.ts';
import { readBodyText } from '../stream/read-body.ts';
import type { Clock } from '../stream/timers.ts';
import { apiHeaders, causeOf, type Fetch, reasonOf } from '../upstream/fetch.ts';

/** A provider's model list. The longest known, OpenRouter's, has less than 1 MiB (2026-11-21). */
const MAX_MODEL_LIST_BYTES = 4 * 1024 * 1024;

/** How long an isolate caches a provider's model list. */
const MODEL_LIST_TTL_MS = 60_000;

/** How long an isolate caches a failure to list models, so that not every caller repeats the call. */
const MODEL_LIST_FAILURE_TTL_MS = 10_000;

/** How long `/v1/models` waits for the providers' lists before it responds with those that are there. */
const MODEL_LIST_TIMEOUT_MS = 5000;

/** A model in the form of OpenAI's list. The id is the model's address. */
export interface Model {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

interface ListFailure {
  /** For clients: it does not name the provider's URL. */
  readonly reason: string;
  /** For the log, with the URL. */
  readonly cause: string;
}

type ModelList = Result<readonly Model[], ListFailure>;

interface ModelListPorts {
  readonly fetch: Fetch;
  readonly clock: Pick<Clock, 'now'>;
}

export class ModelLists {
  readonly #ports: ModelListPorts;
  readonly #lists = new Map<string, { readonly list: ModelList; readonly until: number }>();

  constructor(ports: ModelListPorts) {
    this.#ports = ports;
  }

  /**
   * The models of a provider.
   * @param credential the caller's own provider key, whose list is not cached; null: the deployment's key is used
   */
  async list(
    configured: ConfiguredProvider,
    credential: string | null,
    leaseMemory: LeaseMemory,
  ): Promise<ModelList> {
    const { id } = configured.provider;
    const now = this.#ports.clock.now();
    const known = this.#lists.get(id);
    if (credential === null && known !== undefined && known.until > now) return known.list;
    const list = await this.#fetch(configured, credential ?? configured.apiKey, leaseMemory);
    // A list is cached when it has arrived: in Workers, a request must not wait for a promise of another request.
    const ttl = list.kind === 'error' ? MODEL_LIST_FAILURE_TTL_MS : MODEL_LIST_TTL_MS;
    if (credential === null) this.#lists.set(id, { list, until: now + ttl });
    return list;
  }

  /** The names in a provider's cached list, for suggestions. Sends no request. */
  cachedNames(id: string): readonly string[] {
    const list = this.#lists.get(id)?.list;
    return list?.kind === 'ok' ? list.value.map((model) => model.id.slice(id.length + 1)) : [];
  }

  async #fetch(configured: ConfiguredProvider, secret: string, leaseMemory: LeaseMemory): Promise<ModelList> {
    const { provider, headers } = configured;
    const { path } = provider.models ?? OPENAI_MODELS;
    const url = apiUrl(configured, path);
    const fail = (reason: string, details = reason) =>
      failure({ reason, cause: causeOf(url, secret, details) });
    try {
      const response = await this.#ports.fetch(url, {
        headers: { accept: 'application/json', ...apiHeaders(provider, secret, headers) },
        redirect: 'manual',
        signal: AbortSignal.timeout(MODEL_LIST_TIMEOUT_MS),
      });
      if (!response.ok) return fail(`answered ${response.status}`);
      const read = await readBodyText({ message: response, maxBytes: MAX_MODEL_LIST_BYTES }, leaseMemory);
      if (read.kind !== 'text') return fail('did not send a list');
      const { text, lease } = read;
      const models = isWithinJsonBounds(text) ? readList(parseJson(text), provider) : null;
      lease.release();
      return models === null ? fail('did not send a list') : ok(models);
    } catch (error) {
      return fail('could not be reached', reasonOf(error));
    }
  }
}

function readList(list: unknown, provider: Provider): Model[] | null {
  if (!isObject(list)) return null;
  const models = (provider.models ?? OPENAI_MODELS).read(list);
  if (models === null) return null;
  return models
    .filter(({ id }) => isListed(provider, id))
    .map(({ id, created }) => ({
      id: `${provider.id}/${id}`,
      object: 'model',
      created,
      owned_by: provider.id,
    }));
}

const OPENAI_MODELS: ModelsEndpoint = {
  path: '/models',
  read: ({ data }) =>
    readArray(data).flatMap((model) => {
      const id = isObject(model) ? readText(model.id) : undefined;
      return !isObject(model) || id === undefined ? [] : { id, created: readCount(model.created) ?? 0 };
    }),
};

function isListed({ listedModels }: Provider, id: string): boolean {
  return listedModels === undefined || matchesAnyGlob(listedModels, id);
}
