/**
 * `GET /v1/models` and `/v1/models/<id>`: the aliases and models that the caller may use. One form serves the clients
 * of OpenAI and Anthropic, another one Google's.
 */

import { type Caller, mayUse, NO_CALLER_FACTS } from '../auth/caller.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { secretUnreadable, type UnreadableSecret } from '../canonical/secret.ts';
import type { RequestContext } from '../http/context.ts';
import { boundCredential } from '../http/made-credential.ts';
import { ADMIN, identifyAdmin, identifyReader } from '../http/request.ts';
import { type Answer, jsonResponse, refused } from '../http/respond.ts';
import { findPrice } from '../metering/pricing/cost.ts';
import type { Price } from '../metering/pricing/price.ts';
import { isoTime } from '../metering/time.ts';
import { gemini } from '../protocols/gemini/client.ts';
import type { Provider } from '../providers/provider.ts';
import { findAlias, isGlob } from '../routing/targets.ts';
import { type Alias, providerOf, resolveStar } from '../settings/aliases.ts';
import { providerOfBareName } from '../settings/bare-models.ts';
import { missingSecret, servedBy } from '../settings/configured-provider.ts';
import type { Settings } from '../settings/settings.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import { MAX_NAME_CHARS } from '../shared/limits.ts';
import { matchesModel } from '../shared/model-name.ts';
import { didYouMean } from '../shared/nearest.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { commonTraits, type Model, shippedTraits, traitsOf } from './model-lists.ts';

/** `GET /v1/models`: the models that the caller may use, in the form of the client's protocol. Refuses a caller that is not identified. */
export async function handleModels(request: Request, context: RequestContext): Promise<Answer> {
  const found = await findModels(request, context);
  if (found.kind === 'error') return refused(context.client, found.error);
  const { models, notice } = found.value;
  if (context.client.id === gemini.id)
    return jsonResponse({ models: models.map((model) => googleModel(model, context)) });
  const data = viewModels(models, request, context);
  const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
  return jsonResponse({
    object: 'list',
    data,
    has_more: false,
    first_id,
    last_id,
    ...(notice !== null && { notice }),
  });
}

/** A model by any name that a request may have: a listed one, an alias that is a glob, or a bare name. */
export async function handleModel(request: Request, context: RequestContext, id: string): Promise<Answer> {
  const found = await findModels(request, context);
  if (found.kind === 'error') return refused(context.client, found.error);
  const { models, caller } = found.value;
  const model = models.find((known) => known.id === id) ?? modelOfName(id, found.value, context);
  if (model !== undefined && context.client.id === gemini.id)
    return jsonResponse(googleModel(model, context));
  if (model !== undefined) return jsonResponse(viewModels([model], request, context)[0]);
  const missing = missingSecretOf(id, caller, context);
  if (missing !== null) return refused(context.client, secretUnreadable(missing));
  const ids = models.map((known) => known.id);
  const hint = didYouMean(id, ids);
  const message = `There is no model ${JSON.stringify(id.slice(0, MAX_NAME_CHARS))}${hint || ': GET /v1/models lists them'}`;
  return refused(context.client, apiError('model_not_found', message, 'model'));
}

/** The secret without which the provider of a model lists none; null: it needs none that could not be read. */
function missingSecretOf(
  name: string,
  { credential }: Caller,
  { settings }: RequestContext,
): UnreadableSecret | null {
  const id = name.includes('/') ? providerOf(name) : providerOfBareName(name, settings);
  const configured = id === null ? undefined : settings.providers.get(id);
  return configured === undefined ? null : missingSecret(configured, credential !== null);
}

function modelOfName(
  name: string,
  { models, caller }: FoundModels,
  { settings }: RequestContext,
): ShownModel | undefined {
  const { aliases, providers } = settings;
  const alias = findAlias(aliases, name, providers);
  if (alias !== undefined) return aliasModel(name, stepAddresses(alias, name, caller), models, settings);
  const id = name.includes('/') ? null : providerOfBareName(name, settings);
  const model = models.find((known) => known.id === `${id}/${name}`);
  return model && { ...model, id: name };
}

/** The addresses of the steps of an alias that the caller may use. */
function stepAddresses({ name: alias, steps }: Alias, name: string, caller: Caller): readonly string[] {
  const addresses = steps.map(({ address }) => resolveStar(address, alias, name));
  return [...new Set(addresses)].filter((address) => mayUse(caller, address));
}

/** @returns undefined if the caller may use none of the addresses */
function aliasModel(
  name: string,
  addresses: readonly string[],
  listed: readonly Model[],
  { providers }: Settings,
): ShownModel | undefined {
  if (addresses.length === 0) return undefined;
  const traits = addresses.map((address) => {
    const listedModel = listed.find(({ id }) => id === address);
    if (listedModel !== undefined) return listedModel;
    const configured = providers.get(providerOf(address));
    return configured === undefined
      ? {}
      : shippedTraits(configured, address.slice(providerOf(address).length + 1));
  });
  const [address] = addresses;
  return {
    ...{ id: name, object: 'model', created: 0, owned_by: 'weir', ...commonTraits(traits) },
    address: addresses.length === 1 ? (address ?? null) : null,
  };
}

/**
 * Models have the fields of several clients' APIs. Each client ignores those of the others. `?details=true` adds what some clients may
 * not expect.
 */
function viewModels(models: readonly ShownModel[], request: Request, context: RequestContext) {
  const hasDetails = new URL(request.url).searchParams.get('details') === 'true';
  if (hasDetails && context.prices.isStale) context.waitUntil(context.prices.load());
  return models.map(({ address, ...model }) => {
    const { id, created, context_length, max_output_tokens } = model;
    const view = {
      ...model,
      type: 'model',
      display_name: id,
      created_at: isoTime(created * 1000),
      // Anthropic's names, which Claude Code reads: `ModelInfo` of @anthropic-ai/sdk 1.12.0 (2026-11-20).
      ...(context_length !== undefined && { max_input_tokens: context_length }),
      ...(max_output_tokens !== undefined && { max_tokens: max_output_tokens }),
    };
    return hasDetails && address !== null ? { ...view, ...detailsOf(address, context) } : view;
  });
}

/** A model as Google's clients read it: https://ai.google.dev/api/models (2026-11-22). Facts that are not known are absent. */
function googleModel(
  { id, address, context_length, max_output_tokens, supports }: ShownModel,
  { settings }: RequestContext,
) {
  const configured = address === null ? undefined : settings.providers.get(providerOf(address));
  const name = address?.slice(providerOf(address).length + 1) ?? '';
  const embeds = configured !== undefined && matchesAnyGlob(configured.provider.embeddingModels ?? [], name);
  return {
    name: `models/${id}`,
    displayName: id,
    ...(context_length !== undefined && { inputTokenLimit: context_length }),
    ...(max_output_tokens !== undefined && { outputTokenLimit: max_output_tokens }),
    supportedGenerationMethods: embeds
      ? ['embedContent', 'batchEmbedContents']
      : ['generateContent', 'countTokens'],
    ...(supports?.reasoning !== undefined && { thinking: supports.reasoning }),
  };
}

/** The provider's APIs that serve the model, its current price, and the source of traits that the provider's list lacks. */
function detailsOf(address: string, { settings, prices, arrivedAt }: RequestContext) {
  const configured = settings.providers.get(providerOf(address));
  if (configured === undefined) return {};
  const model = address.slice(configured.provider.id.length + 1);
  const { provider, priceIds, makerModel } = servedBy(configured, model);
  const price = findPrice(prices.table, priceIds, model, arrivedAt);
  const traits = traitsOf(provider, makerModel);
  return {
    apis: apisOf(provider, makerModel),
    ...(price !== null && { pricing: viewPrice(price) }),
    ...(traits !== undefined && { facts_source: traits.source, facts_checked: traits.checked }),
  };
}

function apisOf({ endpoints, responses, passthrough, embeddingModels }: Provider, model: string): string[] {
  if (matchesAnyGlob(embeddingModels ?? [], model)) return ['embeddings'];
  const family = responses?.families.find(({ models }) => matchesModel(models, model))?.api ?? 'chat';
  const served = [
    family === 'responses_only' ? undefined : endpoints.chat,
    family === 'chat' ? undefined : responses?.endpoint,
    ...Object.values(passthrough ?? {}),
  ];
  return [...new Set(served.flatMap((endpoint) => endpoint?.protocol.id ?? []))];
}

/** The price without the fields that select it. Rates are per million tokens. */
function viewPrice({ provider: _, models: __, ...price }: Price) {
  return price;
}

/** A model of the response. */
interface ShownModel extends Model {
  /** `<provider>/<model>`; null for an alias of several models. */
  readonly address: string | null;
}

interface FoundModels {
  readonly caller: Caller;
  readonly models: readonly ShownModel[];
  /** Why the list is empty; null if it is not. SDKs ignore the field. */
  readonly notice: string | null;
}

/** Fetches the lists of all providers at once. A provider that fails or is too slow is logged and skipped. */
async function findModels(request: Request, context: RequestContext): Promise<Result<FoundModels, ApiError>> {
  const { settings, ports } = context;
  const identified = await identifyModelReader(request, context);
  if (identified.kind === 'error') return identified;
  const caller = identified.value;
  // With AUTH=passthrough the caller's key is the default provider's, and no other provider may receive it.
  const callerPays = caller.credential !== null;
  const known = [...settings.providers.values()].filter(
    ({ provider }) => !callerPays || provider.id === settings.defaultProvider,
  );
  const missing = known.flatMap((configured) => missingSecret(configured, callerPays) ?? []);
  const providers = known.filter((configured) => missingSecret(configured, callerPays) === null);
  const failures: string[] = [];
  const lists = await Promise.all(
    providers.map(async (configured) => {
      const made = boundCredential(configured, caller, context);
      const list = await context.upstreams.modelLists.list(
        configured,
        caller.credential,
        context.takeMemory,
        made,
      );
      if (list.kind === 'ok') return list.value;
      const { id } = configured.provider;
      const { cause, reason } = list.error;
      const settings = [configured.keySetting, configured.urlSetting].filter((setting) => setting !== null);
      ports.log({ event: 'models_unavailable', provider: id, cause, check: settings.join(', ') });
      failures.push(`${id} ${reason}`);
      return [];
    }),
  );
  const listed = lists.flat();
  const aliases = settings.aliases
    .filter((alias) => !isGlob(alias))
    .flatMap((alias) => {
      const { name } = alias;
      return aliasModel(name, stepAddresses(alias, name, caller), listed, settings) ?? [];
    });
  const models: readonly ShownModel[] = [
    ...aliases,
    ...listed.filter(({ id }) => mayUse(caller, id)).map((model) => ({ ...model, address: model.id })),
  ];
  if (models.length > 0) return ok({ caller, models, notice: null });
  const [secret] = missing;
  if (secret !== undefined && listed.length === 0) return failure(secretUnreadable(secret));
  const notice = whyEmpty(providers.length, listed.length, failures);
  ports.log({ event: 'models_empty', notice });
  return ok({ caller, models, notice });
}

function whyEmpty(providers: number, listed: number, failures: readonly string[]): string {
  if (providers === 0)
    return 'No provider is called: the operator has set no key, or AUTH=passthrough without DEFAULT_PROVIDER';
  if (listed > 0) return 'This key may use none of the models';
  return failures.length > 0
    ? `No provider listed its models: ${failures.join(', ')}`
    : 'The providers listed no models';
}

/** The caller, or the admin as a caller that may use every model. */
async function identifyModelReader(
  request: Request,
  context: RequestContext,
): Promise<Result<Caller, ApiError>> {
  const admin = context.settings.auth === 'open' ? ok(null) : await identifyAdmin(request, context);
  const reader = await identifyReader(request, context, admin);
  if (reader.kind === 'error') return reader;
  switch (reader.value.kind) {
    case 'admin':
      return ok(readerOf(ADMIN));
    case 'token':
      return ok(readerOf(reader.value.token.id));
    case 'caller':
      return ok(reader.value.caller);
  }
}

/** Reads the list of all models, and calls none. */
function readerOf(keyId: string): Caller {
  return { keyId, models: null, credential: null, key: null, facts: NO_CALLER_FACTS };
}
