/** Translates a body by the rules of a provider or profile, as the gateway does. */

import type { ApiError } from '../../src/canonical/error.ts';
import { configuredProvider } from '../../src/providers/compatible.ts';
import { PROFILES, PROVIDERS } from '../../src/providers/index.ts';
import type { Provider, Route } from '../../src/providers/provider.ts';
import type { PromptCache, Unsupported } from '../../src/request-translation/rules.ts';
import { type JsonObject, readArray } from '../../src/shared/json.ts';
import { type Translation, writeRequest } from './write-request.ts';

export function providerNamed(id: string): Provider {
  const known = PROVIDERS.find((provider) => provider.id === id);
  // A profile may have the same id as a provider with a native API.
  const profile = PROFILES.find((candidate) => candidate.id === id.replace(/^like /, ''));
  if (known !== undefined) return known;
  if (profile === undefined) throw new Error(`There is no provider ${id}`);
  return configuredProvider(id, profile, 'PROVIDERS');
}

/** A translation, flat so that one matcher describes it. */
export type Rewritten =
  | ({ readonly kind: 'body' } & Translation)
  | { readonly kind: 'error'; readonly error: ApiError };

export function rewrite(
  id: string,
  body: JsonObject,
  unsupported: Unsupported = 'auto',
  route: Route = 'chat',
  promptCache: PromptCache = 'off',
  isFromOtherProtocol = false,
): Rewritten {
  const provider = providerNamed(id);
  const endpoint = provider.endpoints[route];
  if (endpoint === undefined) throw new Error(`${id} has no ${route}`);
  const model = String(body.model ?? 'm');
  const { name, id: providerId } = provider;
  const options = { model, provider: name, providerId, unsupported, promptCache, isFromOtherProtocol };
  const written = writeRequest(endpoint.request, { fields: body, turns: null }, options);
  return written.kind === 'error' ? written : { kind: 'body', ...written.value };
}

/** The body that is sent. Throws if there is none. */
export function send(id: string, body: JsonObject, route: Route = 'chat'): JsonObject {
  const rewritten = rewrite(id, body, 'auto', route);
  if (rewritten.kind === 'error') throw new Error(rewritten.error.message);
  return rewritten.body;
}

/** The messages that are sent for these. */
export function sendMessages(
  id: string,
  messages: readonly JsonObject[],
  more: JsonObject = {},
): readonly unknown[] {
  return readArray(send(id, { ...more, messages }).messages);
}

/** The body that is sent for a client of Messages or Responses. Throws if there is none. */
export function sendFromOther(id: string, body: JsonObject): Extract<Rewritten, { readonly kind: 'body' }> {
  const rewritten = rewrite(id, body, 'auto', 'chat', 'off', true);
  if (rewritten.kind === 'error') throw new Error(rewritten.error.message);
  return rewritten;
}

export const TOOL = {
  type: 'function',
  function: { name: 'f', parameters: { type: 'object', properties: {} } },
};

export function call(id: string, more: JsonObject = {}): JsonObject {
  return { id, type: 'function', function: { name: 'f', arguments: '{}' }, ...more };
}
