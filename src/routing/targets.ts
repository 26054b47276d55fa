/** Finds the targets of a request: names to addresses, through aliases, and addresses to providers, endpoints and models (R1-R3). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { PROVIDERS } from '../providers/index.ts';
import type { Endpoint, PassthroughEndpoint, Route } from '../providers/provider.ts';
import { type AliasTarget, findAlias, isGlob, plainTarget, providerIn } from '../settings/aliases.ts';
import type { ConfiguredProvider, Settings } from '../settings/settings.ts';
import { isObject, type JsonObject, readArray, readText } from '../shared/json.ts';
import { MAX_TARGETS } from '../shared/limits.ts';
import { didYouMean } from '../shared/nearest.ts';
import { orderTargets } from './weighted-order.ts';

/** One model at one provider that may serve a request. */
export interface Target extends ConfiguredProvider {
  readonly endpoint: Endpoint;
  /** The model's name at the provider; on the agents' route, the agent's id. */
  readonly model: string;
  /** `<provider>/<model>`: what a key's globs are held against. */
  readonly address: string;
  /** What its alias says of it. */
  readonly aliasTarget: AliasTarget;
}

/** A target that is not asked, and why: in a word, as error codes are. */
export interface SkippedTarget {
  readonly target: Pick<Target, 'provider' | 'model' | 'address'>;
  readonly reason: 'model_not_allowed' | 'unsupported_route' | 'other_provider' | 'circuit_open';
}

export type TargetsResult =
  | {
      readonly kind: 'targets';
      readonly targets: readonly [Target, ...Target[]];
      readonly skipped: readonly SkippedTarget[];
    }
  | { readonly kind: 'error'; readonly error: ApiError };

export interface TargetsRequest {
  readonly settings: Settings;
  readonly route: Route;
  readonly body: JsonObject;
  readonly names: readonly string[];
  /** What picks among an alias's weighted steps: `ticketOf`. */
  readonly stickyKey: () => string;
  /** Whether the caller's key may use the model at an address (K3). */
  readonly mayUse: (address: string) => boolean;
  /** The credential is the caller's own: nobody but the first target's provider may see it (R4). */
  readonly callerPays: boolean;
}

/**
 * The targets in the order in which they are tried, each once, and those that are left out: for the key's globs, because their
 * provider does not have the route, or because it would see another one's key. A name that leads nowhere is an error.
 */
export function findTargets(request: TargetsRequest): TargetsResult {
  const { settings, names, stickyKey } = request;
  const places: Place[] = [];
  for (const name of names) {
    const alias = findAlias(settings.aliases, name, settings.providers);
    const steps = alias === undefined ? [null] : orderTargets(alias.steps, stickyKey());
    for (const step of steps) {
      const found = findPlace(name, step, request);
      if (found.kind === 'error') return found;
      const { place } = found;
      if (!places.some((known) => isSame(known, place))) places.push(place);
    }
  }
  return places.length > MAX_TARGETS ? tooMany(places.length) : sift(places, request);
}

/** A target that may lack the endpoint for its route. */
type Place = Omit<Target, 'endpoint'> & { readonly endpoint: Endpoint | undefined };

type PlaceResult =
  | { readonly kind: 'place'; readonly place: Place }
  | { readonly kind: 'error'; readonly error: ApiError };

/** Where a name leads: to its alias's step, or to the address that it is. */
function findPlace(name: string, step: AliasTarget | null, { settings, route }: TargetsRequest): PlaceResult {
  const param = route === 'agents' ? 'agent_id' : 'model';
  const address = step?.address ?? name;
  const prefix = providerIn(address);
  const isAddressed = settings.providers.has(prefix) || PROVIDERS.some((provider) => provider.id === prefix);
  const id = isAddressed ? prefix : defaultProvider(settings, route);
  if (id === null) {
    return notFound(unknownProvider(address, settings), param);
  }
  const configured = settings.providers.get(id);
  if (configured === undefined) {
    const [setting] = PROVIDERS.find((provider) => provider.id === id)?.apiKeySettings ?? [];
    const cause = setting === undefined ? '' : `: its operator has not set ${setting}`;
    return notFound(`The provider ${id} is not set up in this deployment${cause}`, param);
  }
  const model = isAddressed ? address.slice(id.length + 1) : address;
  if (model === '') return notFound(`${name} names no model`, param);
  const endpoint = configured.provider.endpoints[route];
  const place = {
    ...configured,
    endpoint,
    model,
    address: `${id}/${model}`,
    aliasTarget: step ?? plainTarget(address),
  };
  return { kind: 'place', place };
}

/** What is wrong with a name that leads to no provider, with the nearest one that is known. */
function unknownProvider(address: string, { providers, aliases }: Settings): string {
  const prefix = providerIn(address);
  const ids = [...providers.keys()];
  const known = `Providers here: ${ids.join(', ') || 'none yet'}`;
  if (prefix === '') {
    const names = aliases.filter((alias) => !isGlob(alias)).map(({ name }) => name);
    const hint = didYouMean(address, names) || ': write <provider>/<model>';
    return `${address} names no provider${hint}${hint.endsWith('?') ? '' : '.'} ${known}`;
  }
  const hint = didYouMean(prefix, [...ids, ...PROVIDERS.map(({ id }) => id)]) || '.';
  return `${address}: unknown provider ${JSON.stringify(prefix)}${hint} ${known}`;
}

function notFound(message: string, param: string): PlaceResult {
  return { kind: 'error', error: apiError('model_not_found', message, param) };
}

/** An agent belongs to the provider that has agents: where only one is set up, it needs no address. */
function defaultProvider(settings: Settings, route: Route): string | null {
  if (route !== 'agents') return settings.defaultProvider;
  const withAgents = [...settings.providers.values()].filter(
    ({ provider }) => provider.endpoints.agents !== undefined,
  );
  return withAgents.length === 1 ? (withAgents[0]?.provider.id ?? null) : settings.defaultProvider;
}

/** One model with other fields is another target. */
function isSame(a: Place, b: Place): boolean {
  return a.address === b.address && a.aliasTarget.set === b.aliasTarget.set;
}

function tooMany(count: number): TargetsResult {
  const message = `model and models stand for ${count} targets: ${MAX_TARGETS} are the most`;
  return { kind: 'error', error: apiError('invalid_request', message, 'models') };
}

function sift(places: readonly Place[], { route, body, mayUse, callerPays }: TargetsRequest): TargetsResult {
  const targets: Target[] = [];
  const skipped: SkippedTarget[] = [];
  const errors: ApiError[] = [];
  for (const place of places) {
    const { endpoint, provider, aliasTarget } = place;
    const forbidden = addressesOf(place, { ...body, ...aliasTarget.set }).find((address) => !mayUse(address));
    if (forbidden !== undefined) {
      skipped.push({ target: place, reason: 'model_not_allowed' });
      errors.push(apiError('model_not_allowed', `This key may not use ${forbidden}`));
    } else if (endpoint === undefined) {
      skipped.push({ target: place, reason: 'unsupported_route' });
      errors.push(apiError('unsupported_route', `${provider.name} has no ${route} endpoint`));
    } else if (callerPays && targets.some((target) => target.provider !== provider)) {
      skipped.push({ target: place, reason: 'other_provider' });
    } else {
      targets.push({ ...place, endpoint });
    }
  }
  const [first, ...others] = targets;
  if (first !== undefined) return { kind: 'targets', targets: [first, ...others], skipped };
  return { kind: 'error', error: errors[0] ?? apiError('model_not_found', 'No model is named', 'model') };
}

/** Every model that a request to the target may reach: a router behind one address reads more of them from the body (OpenRouter's field). */
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

/** Where a request for the target goes. */
export function targetUrl(target: Target, body: JsonObject): string {
  return apiUrl(target, target.endpoint.path(body));
}

/** Where a request goes that passes as it is. */
export function passthroughUrl(target: Target, { path }: PassthroughEndpoint): string {
  return apiUrl(target, path);
}

/** A base URL may end in the version with which the path begins, as SDKs of one API differ in that, or have its version elsewhere. */
export function apiUrl(
  { baseUrl, provider, query }: Pick<ConfiguredProvider, 'baseUrl' | 'provider' | 'query'>,
  path: string,
): string {
  const [version = ''] = /^\/v\d\w*(?=\/)/.exec(path) ?? [];
  const hasVersion = baseUrl.endsWith(version) || provider.versionedBase?.test(baseUrl) === true;
  const url = baseUrl + (hasVersion ? path.slice(version.length) : path);
  if (Object.keys(query).length === 0) return url;
  return `${url}${url.includes('?') ? '&' : '?'}${new URLSearchParams(query)}`;
}
