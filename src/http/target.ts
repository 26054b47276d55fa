/** Finds where a request goes: model address or agent, to a configured provider, its endpoint and its model. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { type JsonObject, readText } from '../canonical/json.ts';
import { PROVIDERS } from '../providers/index.ts';
import type { Endpoint, Route } from '../providers/provider.ts';
import type { ConfiguredProvider, Settings } from '../settings/settings.ts';

export interface Target extends ConfiguredProvider {
  readonly endpoint: Endpoint;
  /** The model's name at the provider; on the agents' route, the agent's id. */
  readonly model: string;
  /** The model or agent as the caller named it: an alias, an address, or a bare name. */
  readonly asked: string;
  /** `<provider>/<model>`: what a key's globs are held against. */
  readonly address: string;
}

export type TargetResult =
  | { readonly kind: 'target'; readonly target: Target }
  | { readonly kind: 'error'; readonly error: ApiError };

export function findTarget(settings: Settings, route: Route, body: JsonObject): TargetResult {
  const param = route === 'agents' ? 'agent_id' : 'model';
  const asked = readText(body[param]) ?? '';
  const address = settings.aliases.get(asked) ?? asked;
  const slash = address.indexOf('/');
  const prefix = address.slice(0, Math.max(slash, 0));
  const isAddressed = settings.providers.has(prefix) || PROVIDERS.some((provider) => provider.id === prefix);
  const id = isAddressed ? prefix : defaultProvider(settings, route);
  if (id === null) {
    const ids = [...settings.providers.keys()].join(', ') || 'none yet';
    return notFound(`${asked} names no provider: write <provider>/<model>. Providers here: ${ids}`, param);
  }
  const configured = settings.providers.get(id);
  if (configured === undefined) return notFound(`The provider ${id} is not set up in this deployment`, param);
  const endpoint = configured.provider.endpoints[route];
  if (endpoint === undefined) {
    return {
      kind: 'error',
      error: apiError('unsupported_route', `${configured.provider.name} has no ${route} endpoint`),
    };
  }
  const model = isAddressed ? address.slice(slash + 1) : address;
  if (model === '') return notFound(`${asked} names no model`, param);
  return { kind: 'target', target: { ...configured, endpoint, asked, model, address: `${id}/${model}` } };
}

/** Where a request for the target goes. */
export function targetUrl({ baseUrl, endpoint, query }: Target, body: JsonObject): string {
  return withQuery(baseUrl + endpoint.path(body), query);
}

export function withQuery(url: string, query: Readonly<Record<string, string>>): string {
  const parameters = new URLSearchParams(query).toString();
  return parameters === '' ? url : `${url}?${parameters}`;
}

/** An agent belongs to the provider that has agents: where only one is set up, it needs no address. */
function defaultProvider(settings: Settings, route: Route): string | null {
  if (route !== 'agents') return settings.defaultProvider;
  const withAgents = [...settings.providers.values()].filter(
    ({ provider }) => provider.endpoints.agents !== undefined,
  );
  return withAgents.length === 1 ? (withAgents[0]?.provider.id ?? null) : settings.defaultProvider;
}

function notFound(message: string, param: string): TargetResult {
  return { kind: 'error', error: apiError('model_not_found', message, param) };
}
