/**
 * Finds the targets of a request: reads the model names, resolves aliases, and maps each address to a provider, an
 * endpoint and a model.
 */

import { type ApiError, apiError } from '../canonical/error.ts';
import { secretUnreadable } from '../canonical/secret.ts';
import { isReserved, PROVIDERS } from '../providers/index.ts';
import type { Endpoint, PassthroughEndpoint, Route } from '../providers/provider.ts';
import {
  type Alias,
  type AliasTarget,
  providerOf,
  resolveStar,
  targetWithoutAlias,
} from '../settings/aliases.ts';
import { configuredMaker, makersOf, providerOfBareName } from '../settings/bare-models.ts';
import { missingSecret, type ServingProvider, servedBy } from '../settings/configured-provider.ts';
import type { ConfiguredProvider, Settings } from '../settings/settings.ts';
import { matchesGlob } from '../shared/glob.ts';
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { MAX_TARGETS } from '../shared/limits.ts';
import { didYouMean } from '../shared/nearest.ts';
import { failure, ok, type Result } from '../shared/result.ts';

/** One model at one provider that may serve a request. */
export interface Target extends ServingProvider {
  readonly endpoint: Endpoint;
  /** The model's name at the provider, or the agent's id on the agents route. */
  readonly model: string;
  /** `<provider>/<model>`: what a key's globs are compared with. */
  readonly address: string;
  /** The options that its alias sets for it. */
  readonly aliasTarget: AliasTarget;
}

/** A target that is skipped. The reason has the form of an error code. */
export interface SkippedTarget {
  readonly target: Pick<Target, 'provider' | 'model' | 'address'>;
  readonly reason:
    | 'model_not_allowed'
    | 'secret_unreadable'
    | 'unsupported_route'
    | 'other_provider'
    | 'circuit_open';
}

export interface FoundTargets {
  /** In the order in which they are tried. */
  readonly targets: readonly [Target, ...Target[]];
  readonly skipped: readonly SkippedTarget[];
}

export interface TargetsRequest {
  readonly settings: Settings;
  readonly route: Route;
  readonly body: JsonObject;
  readonly names: readonly string[];
  /** Selects among an alias's weighted targets: {@link stickyKey}. */
  readonly stickyKey: () => string;
  /** Whether the caller's key may use the model at an address. */
  readonly mayUse: (address: string) => boolean;
  /** A currency in which the caller's key has a hard budget and the model of the target has no price; null: there is none. */
  readonly unpricedIn: (target: Pick<Target, 'priceIds' | 'model'>) => string | null;
  /** The credential is the caller's own: only the first target's provider may receive it (R4). */
  readonly callerPays: boolean;
}

/**
 * Returns each target once, in the order to try them, and the targets that are skipped: those that the key's globs
 * exclude or its budget cannot pay, those without an endpoint for the route, and those of another provider than the one
 * whose credential the caller sent. A name that cannot be resolved is an error.
 */
export function findTargets(request: TargetsRequest): Result<FoundTargets, ApiError> {
  const { settings, names, stickyKey } = request;
  const candidates: TargetCandidate[] = [];
  for (const name of names) {
    const alias = findAlias(settings.aliases, name, settings.providers);
    const aliasTargets = alias === undefined ? [null] : orderedSteps(alias, name, stickyKey());
    for (const aliasTarget of aliasTargets) {
      const found = findCandidate(name, aliasTarget, request);
      if (found.kind === 'error') return found;
      if (!candidates.some((known) => isSame(known, found.value))) candidates.push(found.value);
    }
  }
  return candidates.length > MAX_TARGETS ? tooMany(candidates.length) : selectUsable(candidates, request);
}

/** The steps in the order in which they are tried, with the addresses that they have for this name. */
function orderedSteps(alias: Alias, name: string, key: string): readonly AliasTarget[] {
  return orderTargets(alias.steps, key).map((step) => {
    const address = resolveStar(step.address, alias.name, name);
    return address === step.address ? step : { ...step, address };
  });
}

/**
 * The alias with this name, or else the first glob that matches. A glob without a slash does not match addresses of configured
 * providers.
 */
export function findAlias(
  aliases: readonly Alias[],
  name: string,
  providers: Settings['providers'],
): Alias | undefined {
  const exact = aliases.find((alias) => alias.name === name);
  if (exact !== undefined || !aliases.some(isGlob)) return exact;
  const isAddress = providers.has(providerOf(name));
  return aliases.find(
    (alias) => isGlob(alias) && (!isAddress || alias.name.includes('/')) && matchesGlob(alias.name, name),
  );
}

/** Whether an alias stands for all names of a pattern. */
export function isGlob({ name }: Alias): boolean {
  return name.includes('*');
}

/** A target whose provider may have no endpoint for the route. */
type TargetCandidate = Omit<Target, 'endpoint'> & { readonly endpoint: Endpoint | undefined };

/** @param aliasTarget null: the name is no alias, but an address or a bare model name */
function findCandidate(
  name: string,
  aliasTarget: AliasTarget | null,
  { settings, route }: TargetsRequest,
): Result<TargetCandidate, ApiError> {
  const param = route === 'agents' ? 'agent_id' : 'model';
  const address = aliasTarget?.address ?? name;
  const prefix = providerOf(address);
  const isAddressed = settings.providers.has(prefix) || isKnownProvider(prefix, settings);
  const id = isAddressed ? prefix : defaultProvider(address, settings, route);
  if (id === null) {
    return notFound(unknownProvider(address, settings), param);
  }
  const configured = settings.providers.get(id);
  if (configured === undefined) return notFound(`The provider ${notSetUp(id)}`, param);
  const model = isAddressed ? address.slice(id.length + 1) : address;
  if (model === '') return notFound(`${name} names no model`, param);
  const serving = servedBy(configured, model);
  return ok({
    ...serving,
    endpoint: serving.provider.endpoints[route],
    model,
    address: `${id}/${model}`,
    aliasTarget: aliasTarget ?? targetWithoutAlias(address),
  });
}

/**
 * Whether the first part of a name is a built-in provider, whether it is set up or not. Where there is a default provider, such as
 * another gateway, that may be one of its models' makers.
 */
function isKnownProvider(id: string, { defaultProvider }: Settings): boolean {
  return isReserved(id) || (defaultProvider === null && PROVIDERS.some((provider) => provider.id === id));
}

function notSetUp(id: string): string {
  const [setting] = PROVIDERS.find((provider) => provider.id === id)?.apiKeySettings ?? [];
  const cause = setting === undefined ? `has no ${id} in PROVIDERS` : `has not set ${setting}`;
  return `${id} is not set up in this deployment: its operator ${cause}`;
}

/** The message for a name without a known provider. It suggests the nearest known name. */
function unknownProvider(address: string, { providers, aliases }: Settings): string {
  const prefix = providerOf(address);
  const ids = [...providers.keys()];
  const providerList = `Providers here: ${ids.join(', ') || 'none yet'}`;
  if (prefix === '') {
    const names = aliases.filter((alias) => !isGlob(alias)).map(({ name }) => name);
    const near = didYouMean(address, names);
    const maker = configuredMaker(address, providers);
    const [absent] = makersOf(address);
    if (near === '' && maker === null && absent !== undefined)
      return `${address} names no provider, and its maker ${notSetUp(absent.id)}. ${providerList}`;
    const hint =
      near || (maker === null ? ': write <provider>/<model>' : `: did you mean ${maker}/${address}?`);
    return `${address} names no provider${hint}${hint.endsWith('?') ? '' : '.'} ${providerList}`;
  }
  const hint = didYouMean(prefix, [...ids, ...PROVIDERS.map(({ id }) => id)]) || '.';
  return `${address}: unknown provider ${JSON.stringify(prefix)}${hint} ${providerList}`;
}

function notFound(message: string, param: string): Result<never, ApiError> {
  return failure(apiError('model_not_found', message, param));
}

/**
 * The provider of a name without one. On the agents route, whose names are ids of agents, the one configured provider
 * with agents is the default.
 */
function defaultProvider(name: string, settings: Settings, route: Route): string | null {
  if (route !== 'agents')
    return name.includes('/') ? settings.defaultProvider : providerOfBareName(name, settings);
  const withAgents = [...settings.providers.values()].filter(
    ({ provider }) => provider.endpoints.agents !== undefined,
  );
  return withAgents.length === 1 ? (withAgents[0]?.provider.id ?? null) : settings.defaultProvider;
}

/** The same model with other fields is a different target. */
function isSame(a: TargetCandidate, b: TargetCandidate): boolean {
  const [one, other] = [a.aliasTarget, b.aliasTarget];
  return a.address === b.address && one.set === other.set && one.api === other.api;
}

function tooMany(count: number): Result<never, ApiError> {
  const message = `model and models stand for ${count} targets: ${MAX_TARGETS} are the most`;
  return failure(apiError('invalid_request', message, 'models'));
}

function selectUsable(
  candidates: readonly TargetCandidate[],
  { route, body, mayUse, unpricedIn, callerPays }: TargetsRequest,
): Result<FoundTargets, ApiError> {
  const targets: Target[] = [];
  const skipped: SkippedTarget[] = [];
  const errors: ApiError[] = [];
  for (const target of candidates) {
    const { endpoint, provider, aliasTarget } = target;
    const missing = missingSecret(target, callerPays);
    const addresses = addressesOf(target, { ...body, ...aliasTarget.set });
    const forbidden = addresses.find((address) => !mayUse(address));
    const unpriced = findUnpriced(target, addresses, unpricedIn);
    if (forbidden !== undefined) {
      skipped.push({ target, reason: 'model_not_allowed' });
      errors.push(apiError('model_not_allowed', `This key may not use ${forbidden}`));
    } else if (unpriced !== null) {
      skipped.push({ target, reason: 'model_not_allowed' });
      errors.push(unpriced);
    } else if (endpoint === undefined) {
      skipped.push({ target, reason: 'unsupported_route' });
      errors.push(apiError('unsupported_route', `${provider.name} has no ${route} endpoint`));
    } else if (missing !== null) {
      skipped.push({ target, reason: 'secret_unreadable' });
      // The other targets are skipped for good, and this one for some seconds.
      errors.unshift(secretUnreadable(missing));
    } else if (callerPays && targets.some((other) => other.provider.id !== provider.id)) {
      skipped.push({ target, reason: 'other_provider' });
    } else {
      targets.push({ ...target, endpoint });
    }
  }
  const [first, ...others] = targets;
  if (first !== undefined) return ok({ targets: [first, ...others], skipped });
  return failure(errors[0] ?? apiError('model_not_found', 'No model is named', 'model'));
}

function findUnpriced(
  { provider, priceIds }: TargetCandidate,
  addresses: readonly string[],
  unpricedIn: TargetsRequest['unpricedIn'],
): ApiError | null {
  for (const address of addresses) {
    const currency = unpricedIn({ priceIds, model: address.slice(provider.id.length + 1) });
    if (currency === null) continue;
    const message = `${address} has no price in ${currency}, and this key has a hard budget in ${currency}: its operator adds one to PRICES, of 0 for a server of its own`;
    return apiError('model_not_allowed', message, 'model');
  }
  return null;
}

/** No model has a longer name. Names appear in headers and records, so their size is bounded. */
const MAX_MODEL_CHARS = 256;

/** At least one. */
export type RequestedModels = readonly [string, ...string[]];

/**
 * Reads the names of the models that a request accepts: `model`, then `models`, as OpenRouter's clients send them. On the agents route
 * it is the agent's id. Returns them without duplicates, in the order to try them.
 */
export function readRequestedModels(body: JsonObject, route: Route): Result<RequestedModels, ApiError> {
  if (route === 'agents') {
    return isName(body.agent_id) ? ok([body.agent_id]) : invalid('agent_id', 'agent_id must name the agent');
  }
  const { model, models } = body;
  if (isAbsent(models) && isName(model)) return ok([model]);
  const others = models ?? [];
  if (!Array.isArray(others) || !others.every(isName)) {
    return invalid('models', 'models must be a list of names, to be tried in order');
  }
  const [first, ...rest] = new Set(isAbsent(model) ? others : [model, ...others]);
  if (!isName(first) || (!isAbsent(model) && !isName(model))) {
    return invalid(
      'model',
      'model must be a name such as "deepseek/deepseek-flash" (GET /v1/models lists them)',
    );
  }
  const names = [first, ...rest.filter(isName)] as const;
  if (names.length > MAX_TARGETS)
    return invalid('models', `models and model may name ${MAX_TARGETS} at most`);
  return ok(names);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function isName(value: unknown): value is string {
  const text = readText(value);
  return text !== undefined && text.length <= MAX_MODEL_CHARS && !hasControl(text);
}

/** Whether the text contains one of Unicode's control characters. */
function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return true;
  }
  return false;
}

function invalid(param: string, message: string): Result<never, ApiError> {
  return failure(apiError('invalid_request', message, param));
}

const MAX_STICKY_KEY_CHARS = 512;

/** How much of a text tells conversations apart. */
const MAX_OPENING_CHARS = 2048;

/**
 * A key that is the same for all requests of one conversation, which then go to the same target: the client's `prompt_cache_key`, the
 * session or user, or else the opening of the conversation, which every turn repeats.
 * @param affinity the session, or the user whom the request names; null: unknown
 */
export function stickyKey(body: JsonObject, affinity: string | null, random: () => string): string {
  const key = readText(body.prompt_cache_key) ?? affinity;
  return key === null ? (opening(body) ?? random()) : key.slice(0, MAX_STICKY_KEY_CHARS);
}

/** The beginnings of the system text and of the first user message, or of the prompt; null without any text. */
function opening({ messages, prompt }: JsonObject): string | null {
  const first = (...roles: string[]) => {
    const message = readArray(messages).find((one) => isObject(one) && roles.includes(String(one.role)));
    return isObject(message) ? textStart(message.content) : '';
  };
  const text = `${first('system', 'developer')}\0${first('user')}\0${textStart(prompt)}`;
  return text === '\0\0' ? null : text;
}

function textStart(content: unknown): string {
  const [part] = readArray(content);
  const text = Array.isArray(content) ? (isObject(part) ? part.text : part) : content;
  return (readText(text) ?? '').slice(0, MAX_OPENING_CHARS);
}

/**
 * The order in which an alias's targets are tried: as configured, or, if they have weights, one selected by weight and then the others
 * from the highest weight down. The selection is weighted rendezvous hashing: a changed weight, or a target more or less, moves only
 * the keys of its share (en.wikipedia.org/wiki/Rendezvous_hashing, "Weighted rendezvous hash", read 2026-11-22).
 */
export function orderTargets(targets: readonly AliasTarget[], key: string): readonly AliasTarget[] {
  if (targets.length === 1 || targets.every(({ weight }) => weight === 0)) return targets;
  const scores = new Map(targets.map((target, i) => [target, score(target, key, targets.slice(0, i))]));
  const scoreOf = (target: AliasTarget) => scores.get(target) ?? 0;
  const [first] = targets.toSorted((a, b) => scoreOf(b) - scoreOf(a));
  const others = targets.filter((target) => target !== first).sort((a, b) => b.weight - a.weight);
  return first === undefined ? others : [first, ...others];
}

/** @param before the targets before this one: some may have its address, with other options */
function score({ address, weight }: AliasTarget, key: string, before: readonly AliasTarget[]): number {
  const repeat = before.filter((other) => other.address === address).length;
  const unit = hashToUnit(`${key}\0${address}\0${repeat}`);
  return weight / -Math.log(unit + SMALLEST_UNIT);
}

/** Half a step of {@link hashToUnit}, so that its 0 has a logarithm. */
const SMALLEST_UNIT = 2 ** -33;

/** Hashes a text to a number in [0, 1): FNV-1a with the finalizer of MurmurHash3, because similar texts must differ. */
export function hashToUnit(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

/**
 * The addresses of all models that a request to the target may reach. A router behind one address reads more of them
 * from `fallbacks` (OpenRouter).
 */
export function addressesOf(
  { address, provider }: Pick<Target, 'address' | 'provider'>,
  body: JsonObject,
): readonly string[] {
  const others = readArray(body.fallbacks).flatMap((entry) => {
    const model = isObject(entry) ? readText(entry.model) : readText(entry);
    return model === undefined ? [] : [`${provider.id}/${model}`];
  });
  return [address, ...others];
}

/** The URL of a target's endpoint for this body. */
export function targetUrl(target: Addressed, endpoint: Endpoint, body: JsonObject): string {
  return apiUrl(target, endpoint.path(body));
}

/**
 * The URL of a target's endpoint for a request that passes through.
 * @param fields those of chat, with the provider's name of the model
 */
export function passthroughUrl(target: Addressed, { path }: PassthroughEndpoint, fields: JsonObject): string {
  return apiUrl(target, typeof path === 'string' ? path : path(fields));
}

type Addressed = Pick<ConfiguredProvider, 'baseUrl' | 'provider' | 'query'>;

/**
 * Joins a base URL and a path. A base URL may end in the version with which the path begins, because the SDKs of one API differ in
 * this, or contain its version elsewhere.
 */
export function apiUrl({ baseUrl, provider, query }: Addressed, path: string): string {
  const [version = ''] = /^\/v\d\w*(?=\/)/.exec(path) ?? [];
  const hasVersion = baseUrl.endsWith(version) || provider.versionedBase?.test(baseUrl) === true;
  const url = baseUrl + (hasVersion ? path.slice(version.length) : path);
  if (Object.keys(query).length === 0) return url;
  return `${url}${url.includes('?') ? '&' : '?'}${new URLSearchParams(query)}`;
}
