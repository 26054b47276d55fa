/** What a provider is: data, and small functions for the habits that data can't express. All of a provider is in its own file. */
import type { Shape } from '../canonical/chunk.ts';
import type { VendorTokens } from '../canonical/part.ts';
import type { RequestForm } from '../request-translation/translate.ts';
import type { JsonObject } from '../shared/json.ts';
import type { PassthroughProtocol, ProtocolQuirks, UpstreamProtocol } from '../stream/types.ts';
import type { RefusalRules } from './refusals.ts';

/** What a client may ask for, by the route it calls. */
export type Route = 'chat' | 'completions' | 'fim' | 'agents';

/** The shape in which each route answers, whatever dialect the upstream uses. */
export const ROUTE_SHAPES: { readonly [R in Route]: Shape } = {
  chat: 'chat',
  completions: 'text',
  fim: 'chat',
  agents: 'chat',
};

/** Where a provider serves a route, in which dialect, and what it takes there. */
export interface Endpoint {
  /** The path, and query, below the provider's base URL, for a request in OpenAI's form. */
  readonly path: (body: JsonObject) => string;
  readonly request: RequestForm;
  readonly protocol: UpstreamProtocol;
}

/** Where a provider takes a dialect of clients, whose requests and events then pass as they are (N1). */
export interface PassthroughEndpoint {
  /** The path, and query, below the provider's base URL. */
  readonly path: string;
  /** What is counted is read in it. */
  readonly protocol: UpstreamProtocol;
  /** The body so that the provider keeps the text of its reasoning to itself (C6); absent: it can't be asked to. */
  readonly hideReasoning?: (body: JsonObject, model: string) => JsonObject;
}

/** How a provider's API behaves, wherever it is served: an entry of `PROVIDERS` takes one by its host or by name (Q9). */
export interface Profile {
  /** Its name in `"like"`; a provider's own is also the first half of its models' addresses. */
  readonly id: string;
  /** The hosts that serve this API. */
  readonly hosts: readonly string[];
  /** Base URLs that name the API's version before their end: the one that a path begins with is left out. */
  readonly versionedBase?: RegExp;
  readonly endpoints: { readonly [R in Route]?: Endpoint };
  readonly passthrough?: { readonly [D in PassthroughProtocol]?: PassthroughEndpoint };
  readonly quirks: ProtocolQuirks;
  /** The headers that carry a credential; absent: `authorization: Bearer`. */
  readonly credential?: (secret: string) => Readonly<Record<string, string>>;
  /** Headers that each of its requests has. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Where it lists its models; absent: `/models`, in OpenAI's form. */
  readonly models?: ModelsEndpoint;
  /** Its own words for refusals, and how long it does not want to be asked again (E1, R2, R4, R6). */
  readonly refusals?: RefusalRules;
  /** The most tokens that one image of any size can have here; absent: 16,384 (G2). */
  readonly imageTokens?: number;
  /** Globs of the models that search or read by themselves: what they find is part of a prompt of any size (G2). */
  readonly searchingModels?: readonly string[];
  /** Globs of the models of which a whole answer shows every token that is billed; absent: none is known to (G3). */
  readonly visibleOutputModels?: readonly string[];
  /** Of the models in `fallbacks` it bills each one that has begun to answer; absent: the one that answers. */
  readonly billsFallbacks?: true;
  /** The tokens that one of its vendor events reports (V3), or null. */
  readonly vendorTokens: (type: string, event: JsonObject) => VendorTokens | null;
}

export interface ModelsEndpoint {
  /** The path, and query, below the provider's base URL. */
  readonly path: string;
  /** @returns null where the answer is no list; `created` in seconds, 0 where it is not known */
  readonly read: (answer: JsonObject) => readonly { readonly id: string; readonly created: number }[] | null;
}

/** @typeParam Setting the names of its settings, of which the options of `weir()` are made */
export interface Provider<Setting extends string = string> extends Profile {
  /** Its name in messages. */
  readonly name: string;
  /** The settings that may hold its credential: the first that is set does. */
  readonly apiKeySettings: readonly [Setting, ...Setting[]];
  /** The settings that may hold its base URL, and the URL where none is set; null where one must be. */
  readonly baseUrlSettings: readonly [Setting, ...Setting[]];
  readonly defaultBaseUrl: string | null;
  /** Globs over the models that `/v1/models` lists, of all that its API names; absent: all. */
  readonly listedModels?: readonly string[];
}

/** @param secret `""` for no credential */
export function apiHeaders(
  { headers = {}, credential = bearer }: Pick<Profile, 'headers' | 'credential'>,
  secret: string,
  ofDeployment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return { ...headers, ...(secret === '' ? {} : credential(secret)), ...ofDeployment };
}

function bearer(secret: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${secret}` };
}
