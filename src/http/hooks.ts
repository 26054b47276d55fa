/** What the Worker around Weir may say to a request, and is told of it: its own callers, its own answers, and each record (W2). */
import { type Caller, isAdmin } from '../auth/caller.ts';
import { callerId, sha256 } from '../auth/keys.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { withoutCharge } from '../metering/charged-usage.ts';
import type { UsageRecord } from '../metering/record.ts';
import type { RecordWriter } from '../metering/record-writer.ts';
import { isObject, readText } from '../shared/json.ts';
import type { RequestContext } from './context.ts';
import { clientOfPath } from './paths.ts';
import { clientError } from './respond.ts';

/** The hooks of one environment; null where there is none. Whatever they throw or answer, the gateway goes on. */
export interface Hooks {
  readonly onRequest: ((request: Request, requestId: string) => unknown) | null;
  readonly onRecord: ((record: UsageRecord) => unknown) | null;
}

export const NO_HOOKS: Hooks = { onRequest: null, onRecord: null };

export type HookResult =
  /** The host's own caller; null: `AUTH` decides who calls. */
  | { readonly kind: 'go'; readonly caller: Caller | null }
  | { readonly kind: 'answered'; readonly response: Response };

const GO: HookResult = { kind: 'go', caller: null };

const LATE = Symbol('late');

/** Gateway keys and the hashes of credentials have none: whatever the host says, its callers are not those. */
const HOST_PREFIX = 'host_';
/** Names a record, a ledger and a key in KV as it is. Any other id is hashed, and so is one that looks like a hash. */
const PLAIN_ID = /^(?![0-9a-f]{16}$)[\w-]{1,36}$/;

/**
 * Asks the host once about each request of Weir's. Not asked are `/health`, a page's preflights, which bear no credentials, and
 * the bearer of the admin token. A hook that fails lets nothing pass.
 */
export function runOnRequestHook(
  { onRequest }: Hooks,
  request: Request,
  context: RequestContext,
): HookResult | Promise<HookResult> {
  return onRequest === null || request.method === 'OPTIONS' ? GO : ask(onRequest, request, context);
}

async function ask(
  onRequest: NonNullable<Hooks['onRequest']>,
  request: Request,
  context: RequestContext,
): Promise<HookResult> {
  const { settings, requestId } = context;
  if (new URL(request.url).pathname === `${settings.basePath}/health`) return GO;
  if (await isAdmin(settings.adminToken, request.headers)) return GO;
  try {
    const asked = (async () => onRequest(request, requestId))();
    const answer: unknown = await context.deadline.bound(asked, () => LATE);
    if (answer === LATE) throw new Error('It did not answer within DEADLINE_SECONDS');
    // A copy, whose headers can be set: those of a fetched response can't.
    if (answer instanceof Response) return { kind: 'answered', response: new Response(answer.body, answer) };
    if (request.bodyUsed) throw new Error("It has read the request's body: read that of request.clone()");
    return answer === undefined || answer === null ? GO : { kind: 'go', caller: await readIdentity(answer) };
  } catch (error) {
    const failed = hookFailed(context, error);
    return { kind: 'answered', response: clientError(clientOfPath(request), context, failed) };
  }
}

async function readIdentity(answer: unknown): Promise<Caller> {
  const id = isObject(answer) ? readText(answer.id) : undefined;
  const models = isObject(answer) ? (answer.models ?? null) : null;
  const areModels =
    models === null || (Array.isArray(models) && models.every((glob) => typeof glob === 'string'));
  if (id === undefined || !areModels)
    throw new Error('It must answer an identity ({ id, models? }), a Response, or nothing');
  const name = PLAIN_ID.test(id) ? id : callerId(await sha256(id));
  return { keyId: HOST_PREFIX + name, models, key: null, credential: null };
}

function hookFailed({ ports, requestId }: RequestContext, reason: unknown): ApiError {
  ports.log({ event: 'hook_failed', hook: 'onRequest', request_id: requestId, reason: String(reason) });
  return apiError('internal_error', 'The Worker around Weir failed on this request; its log has the reason');
}

/** The writer, which tells the host of each record: in `waitUntil`, beside the writing, which no failure of the hook touches. */
export function withRecordHook(
  records: RecordWriter,
  { onRecord }: Hooks,
  { ports, waitUntil }: Pick<RequestContext, 'ports' | 'waitUntil'>,
): Pick<RecordWriter, 'write'> {
  if (onRecord === null) return records;
  async function tell(record: UsageRecord): Promise<void> {
    try {
      // A copy, so that a hook cannot change what is stored.
      await onRecord?.(structuredClone(withoutCharge(record)));
    } catch (error) {
      const { request_id } = record;
      ports.log({ event: 'hook_failed', hook: 'onRecord', request_id, reason: String(error) });
    }
  }
  return {
    write: (record, startTimer) => {
      waitUntil(tell(record));
      return records.write(record, startTimer);
    },
  };
}
