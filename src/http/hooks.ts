/** Runs the host Worker's hooks: `onRequest` before a request is handled, and `onRecord` for each usage record. */
import { type Caller, callerToken, isAdmin, NO_CALLER_FACTS } from '../auth/caller.ts';
import { callerId } from '../auth/caller-ids.ts';
import { isUsageToken } from '../auth/usage-tokens.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { type UsageRecord, withoutCharge } from '../metering/record.ts';
import type { RecordWriter } from '../metering/record-writer.ts';
import { isObject, readText } from '../shared/json.ts';
import type { RequestContext } from './context.ts';
import { type Answer, isAdminPath, refused } from './respond.ts';

/** The hooks of one environment; null where the host has none. They may throw or return anything. */
export interface Hooks {
  readonly onRequest: ((request: Request, requestId: string) => unknown) | null;
  readonly onRecord: ((record: UsageRecord) => unknown) | null;
}

export const NO_HOOKS: Hooks = { onRequest: null, onRecord: null };

export type HookResult =
  /** Weir handles the request. `caller` is the one that the host identified; null: `AUTH` decides. */
  | { readonly kind: 'continue'; readonly caller: Caller | null }
  /** The host's response, or the error where the hook failed. */
  | { readonly kind: 'answered'; readonly answer: Answer };

export const CONTINUE: HookResult = { kind: 'continue', caller: null };

const LATE = Symbol('late');

/**
 * Runs `onRequest`, except for requests with the admin token, or a token that reads usage, which opens no other route.
 * When the hook fails, the request is refused.
 */
export async function runOnRequestHook(
  onRequest: NonNullable<Hooks['onRequest']>,
  request: Request,
  context: RequestContext,
): Promise<HookResult> {
  const { settings, requestId, client } = context;
  const admin = await isAdmin(settings.adminToken, request.headers);
  // A token that could not be compared may be the admin's. The admin routes refuse it, and the host knows all its other callers.
  if (admin.kind === 'error' ? isAdminPath(request.url, settings.basePath) : admin.value) return CONTINUE;
  if (isUsageToken(callerToken(request.headers) ?? '')) return CONTINUE;
  try {
    const running = (async () => onRequest(request, requestId))();
    const result: unknown = await context.deadline.bound(running, () => LATE);
    if (result === LATE) throw new Error('It did not return within DEADLINE_SECONDS');
    // A copy, because the headers of a fetched response cannot be changed.
    if (result instanceof Response) return { kind: 'answered', answer: new Response(result.body, result) };
    if (request.bodyUsed) throw new Error("It has read the request's body: read that of request.clone()");
    if (result === undefined || result === null) return CONTINUE;
    return { kind: 'continue', caller: await readIdentity(result) };
  } catch (error) {
    return { kind: 'answered', answer: refused(client, hookFailed(context, error)) };
  }
}

async function readIdentity(identity: unknown): Promise<Caller> {
  const id = isObject(identity) ? readText(identity.id) : undefined;
  const models = isObject(identity) ? (identity.models ?? null) : null;
  const areModelsValid =
    models === null || (Array.isArray(models) && models.every((glob) => typeof glob === 'string'));
  const user = isObject(identity) ? (identity.user ?? null) : null;
  const isUserValid = user === null || typeof user === 'string';
  if (id === undefined || !areModelsValid || !isUserValid)
    throw new Error('It must return an identity ({ id, models?, user? }), a Response, or nothing');
  const facts = { ...NO_CALLER_FACTS, user };
  return { keyId: await callerId('host', id), models, key: null, credential: null, facts };
}

function hookFailed({ ports, requestId }: RequestContext, reason: unknown): ApiError {
  ports.log({ event: 'hook_failed', hook: 'onRequest', request_id: requestId, reason: String(reason) });
  return apiError('internal_error', 'The Worker around Weir failed on this request; its log has the reason');
}

/** A record writer that also runs `onRecord`. The hook runs in `waitUntil` beside the write, which it cannot delay or break. */
export function withRecordHook(
  records: RecordWriter,
  onRecord: NonNullable<Hooks['onRecord']>,
  { ports, waitUntil }: Pick<RequestContext, 'ports' | 'waitUntil'>,
): Pick<RecordWriter, 'write'> {
  async function runHook(record: UsageRecord): Promise<void> {
    try {
      // A copy, so that the hook cannot change what is stored.
      await onRecord(structuredClone(withoutCharge(record)));
    } catch (error) {
      const { request_id } = record;
      ports.log({ event: 'hook_failed', hook: 'onRecord', request_id, reason: String(error) });
    }
  }
  return {
    write: (record, startTimer) => {
      waitUntil(runHook(record));
      return records.write(record, startTimer);
    },
  };
}
