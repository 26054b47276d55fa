/** Reads and checks a completion request: its body, the models that it names, and the policies that its headers set. */
import { type ApiError, apiError } from '../canonical/error.ts';
import { type Policies, parseVendorEvents } from '../canonical/policies.ts';
import type { RequestContext } from '../http/context.ts';
import { type RequestBody, readRequestBody } from '../http/request.ts';
import type { BoundProtocol, ClientProtocol, ClientRequest } from '../protocols/shared/client-protocol.ts';
import type { Route } from '../providers/provider.ts';
import { UNSUPPORTED, type Unsupported } from '../request-translation/rules.ts';
import { type RequestedModels, readRequestedModels } from '../routing/targets.ts';
import type { Settings } from '../settings/settings.ts';
import type { JsonObject } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import type { MemoryGrant } from '../stream/memory.ts';

/** A path of the gateway: the endpoint of the providers that serves it, and the protocol of its clients. */
export interface ClientRoute<Session> {
  readonly route: Route;
  readonly client: ClientProtocol<Session>;
}

/** The body of a completion: as the client sent it, and as the canonical request. */
export interface ClientBody extends Omit<ClientRequest<unknown>, 'session'> {
  /** As the client sent it. */
  readonly clientBody: JsonObject;
  readonly clientBodyBytes: number;
  readonly client: BoundProtocol;
  readonly requestedModels: RequestedModels;
  /** The memory of the body. Its work has begun. Release it, or end the work and release it later. */
  readonly grant: MemoryGrant;
}

/** What is known of a request before its body is read. */
export interface KnownRequest {
  /** The model, if the path names it (Azure's clients). */
  readonly model?: string;
  /** The body, if it has been read. The function that gets it releases its memory. */
  readonly body?: RequestBody;
  /** The limits of the caller's key have admitted the request already. */
  readonly isAdmitted?: boolean;
}

/**
 * Reads and checks the body of a completion within its bounds, and turns it into the canonical request.
 * @returns the body with the grant of its memory, or an error such as `request_too_large`, `invalid_json` or `invalid_request`
 */
export async function readClientBody<Session>(
  request: Request,
  { route, client }: ClientRoute<Session>,
  context: RequestContext,
  given: KnownRequest = {},
): Promise<Result<ClientBody, ApiError>> {
  const { maxRequestBytes } = context.settings;
  const parsedBody =
    given.body === undefined ? await readRequestBody(request, maxRequestBytes, context) : ok(given.body);
  if (parsedBody.kind === 'error') return parsedBody;
  const { grant, body: sent, bytes: clientBodyBytes } = parsedBody.value;
  const body = client.unwrapped?.(sent) ?? sent;
  const { model } = given;
  const isApart = client.namesModelInPath === true && model !== undefined;
  const clientBody = model === undefined || isApart ? body : { ...body, model };
  const named = readRequestedModels(isApart ? { model } : clientBody, route);
  if (named.kind === 'error') {
    grant.release();
    return named;
  }
  const translated = client.readRequest(clientBody);
  if (translated.kind === 'error') {
    grant.release();
    return translated;
  }
  const { session, fields, turns, thinking, dropped, translationError, isPinned } = translated.value;
  return ok({
    fields,
    turns,
    thinking,
    dropped,
    translationError,
    isPinned,
    clientBody,
    clientBodyBytes,
    client: bindSession(client, session),
    requestedModels: named.value,
    grant,
  });
}

interface RequestPolicies {
  readonly policies: Policies;
  readonly unsupported: Unsupported;
}

/** The deployment's policies, as changed by the headers `x-weir-vendor-events` and `x-weir-unsupported`. */
export function readRequestPolicies(headers: Headers, settings: Settings): Result<RequestPolicies, ApiError> {
  const vendorHeader = headers.get('x-weir-vendor-events');
  const unsupportedHeader = headers.get('x-weir-unsupported');
  const vendorEvents =
    vendorHeader === null ? settings.policies.vendorEvents : parseVendorEvents(vendorHeader);
  if (vendorEvents === null) {
    return invalid('x-weir-vendor-events must be strip, pass, or globs such as x_research.*');
  }
  const unsupported =
    unsupportedHeader === null
      ? settings.unsupported
      : UNSUPPORTED.find((mode) => mode === unsupportedHeader.trim());
  if (unsupported === undefined)
    return invalid(`x-weir-unsupported must be one of: ${UNSUPPORTED.join(', ')}`);
  const policies = vendorHeader === null ? settings.policies : { ...settings.policies, vendorEvents };
  return ok({ policies, unsupported });
}

function invalid(message: string): Result<never, ApiError> {
  return failure(apiError('invalid_request', message));
}

function bindSession<Session>(client: ClientProtocol<Session>, session: Session): BoundProtocol {
  return {
    id: client.id,
    passthrough: client.passthrough ?? null,
    takesVendorEvents: client.takesVendorEvents,
    embeddings: client.embeddings,
    streamType: client.streamType,
    fieldNames: client.fieldNames,
    optionalFields: client.optionalFields,
    errorResponse: (...args) => client.errorResponse(...args),
    streamWriter: (options) => client.streamWriter(session, options),
    jsonWriter: (options) => client.jsonWriter(session, options),
  };
}
