/** What a provider is: data, and small functions for the habits that data can't say. All of a provider is in its own file. */
import type { Shape } from '../canonical/chunk.ts';
import type { JsonObject } from '../canonical/json.ts';
import type { VendorTokens } from '../canonical/part.ts';
import type { Dialect, DialectQuirks } from '../stream/dialect.ts';

/** What a client may ask for, by the route it calls. */
export type Route = 'chat' | 'completions' | 'fim' | 'agents';

/** The shape in which each route answers, whatever the upstream speaks. */
export const ROUTE_SHAPES: { readonly [R in Route]: Shape } = {
  chat: 'chat',
  completions: 'text',
  fim: 'chat',
  agents: 'chat',
};

/** Where a provider serves a route, and how it is spoken to there. */
export interface Endpoint {
  /** The path below the provider's base URL, for a request's body. */
  readonly path: (body: JsonObject) => string;
  /** The body as this provider takes it, out of the body that the client sent (OpenAI's form). */
  readonly body: (body: JsonObject) => JsonObject;
  readonly dialect: Dialect;
}

export interface Provider {
  /** The first half of a model's address. */
  readonly id: string;
  /** Its name in messages. */
  readonly name: string;
  /** The setting that holds its credential. */
  readonly apiKeySetting: string;
  /** The setting that holds its base URL, and the URL where it is not set; null where it must be set. */
  readonly baseUrlSetting: string;
  readonly defaultBaseUrl: string | null;
  readonly endpoints: { readonly [R in Route]?: Endpoint };
  readonly quirks: DialectQuirks;
  /** The tokens that one of its vendor events reports (V3), or null. */
  readonly vendorTokens: (type: string, event: JsonObject) => VendorTokens | null;
}
