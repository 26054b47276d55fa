/**
 * Counts the tokens of a prompt, for the token-counting routes of Messages and Responses: by the provider's own
 * counter, or by an estimate.
 */
import type { Caller } from '../auth/caller.ts';
import type { ApiError } from '../canonical/error.ts';
import type { CompletionContext, EarlyAdmission } from '../completion/admission.ts';
import { upstreamErrorContext } from '../completion/attempt-runner.ts';
import { admitEarly } from '../completion/early-admission.ts';
import { targetsOf } from '../completion/prepare.ts';
import { ReplayableRequest } from '../completion/replayable-request.ts';
import {
  type ClientBody,
  type ClientRoute,
  type KnownRequest,
  readClientBody,
} from '../completion/request.ts';
import { boundCredential } from '../http/made-credential.ts';
import { identifyCaller } from '../http/request.ts';
import { type Answer, jsonResponse, refused } from '../http/respond.ts';
import { estimatePromptTokens } from '../metering/estimate.ts';
import type { Route } from '../providers/provider.ts';
import { apiUrl, type Target } from '../routing/targets.ts';
import { isObject, parseJson } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { readBodyText } from '../stream/read-body.ts';
import { apiHeaders, callUpstream } from '../upstream/fetch.ts';

/** The time limit of the provider's counter. Claude Code counts often and waits for each count. */
const MAX_COUNT_MS = 2000;

const MAX_COUNT_BYTES = 64 * 1024;

/**
 * @param view the response's body in the client protocol
 * @param given the parts of the request that are already read
 */
export async function handleCountTokens<Session>(
  request: Request,
  clientRoute: ClientRoute<Session>,
  context: CompletionContext,
  view: (tokens: number) => object,
  given: KnownRequest = {},
): Promise<Answer> {
  const { client, route } = clientRoute;
  let grant = given.body?.grant;
  let admission: EarlyAdmission | null = null;
  try {
    const identified = await identifyCaller(request, context);
    if (identified.kind === 'error') return refused(client, identified.error);
    const clientBody = await readClientBody(request, clientRoute, context, given);
    if (clientBody.kind === 'error') return refused(client, clientBody.error);
    grant = clientBody.value.grant;
    const scope = { route, headers: request.headers, caller: identified.value, context };
    const target = await findCountingTarget(clientBody.value, scope);
    if (target.kind === 'error') return refused(client, target.error);
    const counter = counterOf(target.value);
    // An estimate reads nothing that others store.
    if (counter !== null && given.isAdmitted !== true) {
      const early = { body: clientBody.value.clientBody, textBytes: 0, isCounted: true };
      const admitted = await admitEarly(request, context, scope.caller, early);
      if (admitted.kind === 'error') return refused(client, admitted.error.error, admitted.error.headers);
      admission = admitted.value;
    }
    const counted = counter === null ? null : await countUpstream(counter, clientBody.value, scope);
    const response = jsonResponse(view(counted ?? estimatePromptTokens(clientBody.value.clientBody)));
    response.headers.set('x-weir-estimated', String(counted === null));
    return response;
  } finally {
    admission?.release();
    grant?.release();
  }
}

interface Counter {
  readonly target: Target;
  readonly tokenCounter: NonNullable<Target['provider']['tokenCounter']>;
}

/** The counter of the target's provider; null: there is none. */
function counterOf(target: Target | null): Counter | null {
  const tokenCounter = target?.provider.tokenCounter;
  return target === null || tokenCounter === undefined ? null : { target, tokenCounter };
}

interface CountScope {
  readonly route: Route;
  /** The client's. */
  readonly headers: Headers;
  readonly caller: Caller;
  readonly context: CompletionContext;
}

/**
 * The target that a completion would try first. A name without a target is no error, because an estimate needs no model.
 * @returns the error where the caller may not use the model
 */
async function findCountingTarget(
  body: ClientBody,
  scope: CountScope,
): Promise<Result<Target | null, ApiError>> {
  const { headers, caller, context } = scope;
  const attributed = await context.attribute({ headers, body: body.clientBody, caller });
  // A key that requires a user does so for its records, and counting has none.
  const affinity = attributed.kind === 'ok' ? attributed.value.affinity : null;
  const found = targetsOf(body, affinity, scope);
  if (found.kind === 'ok') return ok(found.value.targets[0]);
  return found.error.code === 'model_not_allowed' ? failure(found.error) : ok(null);
}

/** The count of the target's provider, or null where it does not respond with a count in time, which is logged. */
async function countUpstream(
  { target, tokenCounter: counter }: Counter,
  clientBody: ClientBody,
  { route, headers, caller, context }: CountScope,
): Promise<number | null> {
  const { settings, ports, takeMemory } = context;
  const callerPays = caller.credential !== null;
  const translated = new ReplayableRequest(clientBody, {
    context,
    route,
    headers: new Headers(),
    callerPays,
    caller,
    session: null,
    policies: settings.policies,
    unsupported: 'drop',
  });
  const targetRequest = await translated.writeFor(target);
  if (targetRequest.kind === 'error') return null;
  const { body, traits } = targetRequest.value;
  const { provider, model } = target;
  const passesBetas = traits.passthrough !== null && counter.refusesBetas !== true;
  const upstream = upstreamErrorContext({ caller, callerPays, context }, target);
  clientBody.grant.endWork();
  const abort = new AbortController();
  const cancelTimer = ports.clock.startTimer(MAX_COUNT_MS, () => abort.abort('aborted'));
  const failed = (reason: string) => {
    const { requestId: request_id } = context;
    ports.log({ event: 'counter_failed', request_id, provider: provider.id, model, reason });
    return null;
  };
  try {
    const called = await callUpstream(target.fetch ?? ports.fetch, {
      upstream,
      url: apiUrl(target, counter.path(model)),
      body: JSON.stringify(counter.request(body, model)),
      isStreamed: false,
      clientHeaders: headers,
      passedHeaders: passesBetas ? (clientBody.client.passthrough?.requestHeaders ?? []) : [],
      callerId: caller.keyId,
      apiHeaders: apiHeaders(provider, upstream.secret, target.headers),
      credential: boundCredential(target, caller, context),
      signal: abort.signal,
      clock: ports.clock,
    });
    if (abort.signal.aborted) return failed(`no count within ${MAX_COUNT_MS / 1000} s`);
    if (called.kind === 'error') {
      const { cause, status, error } = called.error;
      // What a provider says may quote the prompt.
      return failed(cause ?? (status === null ? error.message : `the provider answered ${status}`));
    }
    const responseText = await readBodyText({ message: called.value, maxBytes: MAX_COUNT_BYTES }, takeMemory);
    if (responseText.kind !== 'text') return failed(`the response could not be read: ${responseText.kind}`);
    responseText.grant.release();
    const response = parseJson(responseText.text);
    const count = isObject(response) ? counter.read(response) : undefined;
    return count ?? failed('the response has no count');
  } finally {
    cancelTimer();
  }
}
