/** Fetches the providers' lists of models and caches each for a minute, because fetching one counts against its rate limits. */

import {
  CAPABILITIES,
  type Capability,
  type ListedModel,
  type ModelTraits,
  type Provider,
} from '../providers/provider.ts';
import { apiUrl } from '../routing/targets.ts';
import { servedBy } from '../settings/configured-provider.ts';
import type { ConfiguredProvider } from '../settings/settings.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import {
  isObject,
  isWithinJsonBounds,
  type JsonObject,
  objectOf,
  parseJson,
  readArray,
  readCount,
  readFlag,
  readText,
} from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { TakeMemory } from '../stream/memory.ts';
import { readBodyText } from '../stream/read-body.ts';
import type { Clock } from '../stream/timers.ts';
import {
  apiHeaders,
  type BoundCredential,
  causeOf,
  type Fetch,
  reasonOf,
  sendWithCredential,
} from '../upstream/fetch.ts';

/** A provider's model list. The longest known, OpenRouter's, has less than 1 MiB (2026-11-21). */
const MAX_MODEL_LIST_BYTES = 4 * 1024 * 1024;

/** How long an isolate caches a provider's model list. */
const MODEL_LIST_TTL_MS = 60_000;

/** How long an isolate caches a failure to list models, so that not every caller repeats the call. */
const MODEL_LIST_FAILURE_TTL_MS = 10_000;

/**
 * How long `/v1/models` waits for the providers' lists before it responds with those that are there. Claude Code waits 3 s for it:
 * https://code.claude.com/docs/en/llm-gateway-protocol, by raine/claude-code-proxy#60 (2026-07-19).
 */
const MODEL_LIST_TIMEOUT_MS = 2500;

/** A model in the form of OpenAI's list. The id is the model's address. */
export interface Model {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
  /** Absent traits are unknown. */
  readonly context_length?: number;
  readonly max_output_tokens?: number;
  readonly supports?: Readonly<Record<string, boolean>>;
}

/** What is known of what a model takes. */
export type ModelLimits = Pick<Model, 'context_length' | 'max_output_tokens' | 'supports'>;

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

/**
 * The models that providers list, kept in the isolate for a bounded time. Only lists that the deployment's own
 * credentials return are kept.
 */
export class ModelLists {
  readonly #ports: ModelListPorts;
  readonly #lists = new Map<string, { readonly list: ModelList; readonly until: number }>();

  constructor(ports: ModelListPorts) {
    this.#ports = ports;
  }

  /**
   * The models of a provider.
   * @param credential the caller's own provider key, whose list is not cached; null: the deployment's key is used
   * @param made makes the deployment's credential; null: it is a plain key
   */
  async list(
    configured: ConfiguredProvider,
    credential: string | null,
    takeMemory: TakeMemory,
    made: BoundCredential | null = null,
  ): Promise<ModelList> {
    const { id } = configured.provider;
    const now = this.#ports.clock.now();
    const cachedList = this.#lists.get(id);
    if (credential === null && cachedList !== undefined && cachedList.until > now) return cachedList.list;
    const list = await this.#fetch(configured, credential ?? configured.apiKey, takeMemory, made);
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

  async #fetch(
    configured: ConfiguredProvider,
    secret: string,
    takeMemory: TakeMemory,
    made: BoundCredential | null,
  ): Promise<ModelList> {
    const { provider, headers } = configured;
    const path = provider.models?.path ?? '/models';
    const url = apiUrl(configured, path);
    const fail = (reason: string, details = reason) =>
      failure({ reason, cause: causeOf(url, { secret, madeSecrets: made?.maker.secrets ?? [] }, details) });
    try {
      const send = configured.fetch ?? this.#ports.fetch;
      const init = {
        method: 'GET',
        headers: { accept: 'application/json', ...apiHeaders(provider, secret, headers) },
        body: null,
        redirect: 'manual',
        signal: AbortSignal.timeout(MODEL_LIST_TIMEOUT_MS),
      } as const;
      const sent =
        made === null
          ? { response: await send(url, init), hint: null }
          : await sendWithCredential(send, url, init, made);
      if ('error' in sent) return fail('has no credential', sent.error.message);
      const { response, hint } = sent;
      const answered = `answered ${response.status}`;
      if (!response.ok) return fail(answered, hint === null ? answered : `${answered}: ${hint}`);
      const listText = await readBodyText({ message: response, maxBytes: MAX_MODEL_LIST_BYTES }, takeMemory);
      if (listText.kind !== 'text') return fail('did not send a list');
      const { text, grant } = listText;
      const models = isWithinJsonBounds(text) ? readList(parseJson(text), configured) : null;
      grant.release();
      return models === null ? fail('did not send a list') : ok(models);
    } catch (error) {
      return fail('could not be reached', reasonOf(error));
    }
  }
}

/** The models that the provider lists, and those to which the deployment gives names of its own. */
function readList(list: unknown, configured: ConfiguredProvider): Model[] | null {
  const { provider } = configured;
  if (!isObject(list)) return null;
  const listed = (provider.models?.read ?? readOpenaiList)(list);
  if (listed === null) return null;
  const models = listed.filter(({ id }) => isListed(provider, id));
  const own = Object.keys(configured.models).filter((name) => !models.some(({ id }) => id === name));
  return [...models, ...own.map((id): ListedModel => ({ id, created: 0 }))].map((model) => ({
    id: `${provider.id}/${model.id}`,
    object: 'model',
    created: model.created,
    owned_by: provider.id,
    ...viewTraits(model, shippedFacts(configured, model.id)),
  }));
}

/** What is shipped about a model that its provider's list does not have, or whose list did not come. */
export function shippedTraits(configured: ConfiguredProvider, model: string): ModelLimits {
  return viewTraits({}, shippedFacts(configured, model));
}

function shippedFacts(configured: ConfiguredProvider, model: string) {
  const { provider, makerModel } = servedBy(configured, model);
  return traitsOf(provider, makerModel);
}

/**
 * What holds whichever of several models serves: the smallest limits, and what all of them support. What is unknown of one is unknown
 * of all.
 */
export function commonTraits(models: readonly ModelLimits[]): ModelLimits {
  const least = (field: 'context_length' | 'max_output_tokens') => {
    const tokens = models.flatMap((model) => model[field] ?? []);
    return tokens.length === 0 || tokens.length < models.length ? undefined : Math.min(...tokens);
  };
  const all = (name: Capability) => {
    const flags = models.map(({ supports }) => supports?.[name]);
    return flags.includes(false) ? false : flags.length === 0 || flags.includes(undefined) ? undefined : true;
  };
  const supports = Object.fromEntries(CAPABILITIES.map((name) => [name, all(name)]));
  return viewTraits({
    contextTokens: least('context_length'),
    maxOutputTokens: least('max_output_tokens'),
    supports,
  });
}

/** The shipped traits of a model. */
export function traitsOf({ modelTraits = [] }: Pick<Provider, 'modelTraits'>, model: string) {
  return modelTraits.find(({ models }) => matchesAnyGlob(models, model));
}

/** Facts of the provider's list take precedence over shipped traits. */
function viewTraits(listed: ModelTraits, shipped: ModelTraits = {}): ModelLimits {
  const context = listed.contextTokens ?? shipped.contextTokens;
  const output = listed.maxOutputTokens ?? shipped.maxOutputTokens;
  const supports = CAPABILITIES.flatMap((name) => {
    const isSupported = listed.supports?.[name] ?? shipped.supports?.[name];
    return isSupported === undefined ? [] : [[name, isSupported] as const];
  });
  return {
    ...(context !== undefined && { context_length: context }),
    ...(output !== undefined && { max_output_tokens: output }),
    ...(supports.length > 0 && { supports: Object.fromEntries(supports) }),
  };
}

function readOpenaiList({ data }: JsonObject): readonly ListedModel[] {
  return readArray(data)
    .filter(isObject)
    .flatMap((model) => {
      const id = readText(model.id);
      return id === undefined ? [] : { id, created: readCount(model.created) ?? 0, ...readTraits(model) };
    });
}

/**
 * Reads the names that compatible servers use for traits: OpenRouter (https://openrouter.ai/docs/models), Groq (`context_window`,
 * `max_completion_tokens`: anomalyco/models.dev#1276, 2026-03-26; since then also `max_output_length` and `input_modalities`: #3761,
 * 2026-07-27), Mistral (`max_context_length`, `capabilities`: docs.rs/crate/mistral-openapi-client), vLLM (`max_model_len`:
 * modal-labs/modal-examples#843, 2024-08-16). All read on 2026-11-22.
 */
function readTraits(model: JsonObject): ModelTraits {
  const { top_provider, architecture, supported_parameters } = model;
  const capabilities = objectOf(model.capabilities);
  const names = Array.isArray(supported_parameters) ? supported_parameters : null;
  const inputs = objectOf(architecture).input_modalities ?? model.input_modalities;
  const contexts = [
    model.context_length,
    model.context_window,
    model.max_context_length,
    model.max_model_len,
  ];
  const outputs = [
    model.max_completion_tokens,
    model.max_output_length,
    objectOf(top_provider).max_completion_tokens,
  ];
  return {
    contextTokens: contexts.map(readCount).find((tokens) => tokens !== undefined),
    maxOutputTokens: outputs.map(readCount).find((tokens) => tokens !== undefined),
    supports: {
      tools: names?.includes('tools') ?? readFlag(capabilities.function_calling),
      reasoning: names?.includes('reasoning') ?? readFlag(capabilities.reasoning),
      images: Array.isArray(inputs) ? inputs.includes('image') : readFlag(capabilities.vision),
      structured_output: names?.includes('structured_outputs'),
    },
  };
}

/** A model that embeds is listed where the provider has embeddings here. */
function isListed({ listedModels = ['*'], embeddingModels = [], endpoints }: Provider, id: string): boolean {
  const isServed = endpoints.embeddings !== undefined || !matchesAnyGlob(embeddingModels, id);
  return isServed && matchesAnyGlob(listedModels, id);
}
