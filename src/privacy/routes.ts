/** `/admin/users/:name`: everything that is stored about one user, as lines of JSON, and its erasure. */
import { viewRecord } from '../api/record-view.ts';
import { OPEN_ID } from '../auth/caller-ids.ts';
import { type ApiError, apiError } from '../canonical/error.ts';
import { isUnreadable, secretUnreadable } from '../canonical/secret.ts';
import { forAdmin } from '../http/admin.ts';
import type { Erasures, RequestContext, UserLine } from '../http/context.ts';
import { ERASURE_START, type Erasure, NOTHING_ERASED } from '../http/erasure.ts';
import { internalError, jsonResponse } from '../http/respond.ts';
import { isoTime, isRequestId } from '../metering/time.ts';
import { decodePath, type HttpRoute } from '../routes.ts';
import { type JsonObject, omit } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { KV_ERASURES } from './kv-erasures.ts';
import { knownKeyIds, searchableAt, storesOf } from './steps.ts';

/** `GET /admin/users/:name/export` */
const handleExportUser = forAdmin(async (_request, context, name) => {
  const names = await readUserName(name, context);
  if (names.kind === 'error') return names.error;
  const headers = { 'content-type': 'application/x-ndjson; charset=utf-8' };
  return new Response(streamOf(exportLines(context, name, names.value)), { headers });
});

/** `DELETE /admin/users/:name`: starts an erasure, or continues the one that runs. */
const handleEraseUser = forAdmin(async (_request, context, name) => {
  const names = await readUserName(name, context);
  if (names.kind === 'error') return names.error;
  const { users, ports, requestId, arrivedAt, known } = context;
  if (users.hash === null) return NO_SECRET;
  if (isUnreadable(users.hash)) return secretUnreadable(users.hash);
  const erasure = await erasuresOf(context).start(context, {
    id: requestId,
    startedAt: arrivedAt,
    erasedAt: null,
    phase: 'waiting',
    dueAt: searchableAt(context, arrivedAt),
    names: names.value,
    hashes: await Promise.all(names.value.map(users.hash)),
    position: ERASURE_START,
    ...{ callers: [], ownKeys: [], counts: NOTHING_ERASED, problem: null },
  });
  const { id } = erasure;
  if (id === requestId) ports.log({ event: 'erasure_started', erasure: id, actor: known.actor });
  return jsonResponse(writeErasure(erasure), 202);
});

const NO_SECRET = apiError(
  'misconfigured',
  'An erasure remembers a keyed hash of the name: set the secret USER_HASH_KEY or ADMIN_TOKEN, and list attribution()',
);

/** `GET /admin/erasures/:id` */
const handleShowErasure = forAdmin(async (_request, context, id) => {
  const erasure = isRequestId(id) ? await erasuresOf(context).find(context, id) : null;
  return erasure === null
    ? apiError('not_found', 'There is no such erasure, or it ended more than 30 days ago')
    : jsonResponse(writeErasure(erasure));
});

/** Where the deployment's erasures are. */
function erasuresOf({ userData }: Pick<RequestContext, 'userData'>): Erasures {
  return userData.erasures ?? KV_ERASURES;
}

function writeErasure({ id, phase, startedAt, erasedAt, dueAt, counts, problem }: Erasure): JsonObject {
  return {
    ...{ object: 'erasure', id, status: phase },
    started_at: isoTime(startedAt),
    erased_at: erasedAt === null ? null : isoTime(erasedAt),
    // When the next step is due; the last one forgets the erasure.
    next_at: isoTime(dueAt),
    ...{ erased: counts, problem },
  };
}

const MAX_NAME_CHARS = 1000;

/** All forms in which stores may have the name. */
async function readUserName(
  name: string,
  { users }: Pick<RequestContext, 'users'>,
): Promise<Result<readonly string[], ApiError>> {
  const names = name.length > MAX_NAME_CHARS ? [] : await users.names.forms(name);
  if (isUnreadable(names)) return failure(secretUnreadable(names));
  return names.length > 0
    ? ok(names)
    : failure(apiError('invalid_request', `A user has a name of 1 to ${MAX_NAME_CHARS} characters`, 'name'));
}

/** The last line has the type `end`, or `error` where the export is not complete. */
async function* exportLines(
  context: RequestContext,
  name: string,
  names: readonly string[],
): AsyncGenerator<string> {
  let lines = 0;
  const write = (line: JsonObject) => `${JSON.stringify(line)}\n`;
  yield write({ type: 'user', name, exported_at: isoTime(context.arrivedAt) });
  try {
    for await (const line of userLines(context, names)) {
      lines++;
      yield writeLine(line);
    }
    yield write({ type: 'end', lines });
  } catch (error) {
    const { message } = internalError(context, error);
    yield write({ type: 'error', lines, message: `The export is not complete: ${message}` });
  }
}

async function* userLines(context: RequestContext, names: readonly string[]): AsyncGenerator<UserLine> {
  const keyIds = new Set([OPEN_ID]);
  const all = storesOf(context.userData);
  for (const store of all) {
    if (store.scope !== 'all') continue;
    for await (const line of store.read(context, names)) {
      if (line.type === 'record') keyIds.add(line.record.key_id);
      yield line;
    }
  }
  const stores = all.filter((store) => store.scope === 'key');
  if (stores.length === 0) return;
  for await (const keyId of allKeyIds(context, keyIds))
    for (const store of stores) yield* store.read(context, names, keyId);
}

/** Each id once: those of the set, of the keys in KV, and of the keys that objects know. */
async function* allKeyIds(
  { ports: { store }, userData: { keyIdsAfter } }: RequestContext,
  known: ReadonlySet<string>,
): AsyncGenerator<string> {
  const ids = new Set([...known, ...(await knownKeyIds(store))]);
  yield* ids;
  let after: string | null = null;
  while (keyIdsAfter !== undefined) {
    const page: readonly string[] = await keyIdsAfter(after);
    for (const id of page) if (!ids.has(id)) yield id;
    const last = page.at(-1);
    if (last === undefined) return;
    after = last;
  }
}

function writeLine(line: UserLine): string {
  switch (line.type) {
    case 'record':
      // The first line has the name.
      return `${JSON.stringify({ type: line.type, ...omit({ ...viewRecord(line.record, true) }, 'user') })}\n`;
    case 'response': {
      const { type, keyId, id, input, response } = line;
      const start = JSON.stringify({ type, key_id: keyId, id });
      return `${start.slice(0, -1)},"input":${input},"response":${response}}\n`;
    }
    default:
      return `${JSON.stringify({ type: line.type, ...line.fields })}\n`;
  }
}

/** A stream that reads the lines as fast as its client takes them. */
function streamOf(lines: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { value, done } = await lines.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      cancel: async () => {
        await lines.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

/** The routes of the feature. */
export const PRIVACY_ROUTES: readonly HttpRoute[] = [
  {
    path: '/admin/users/:name',
    prefixesBesideSite: ['/v1'],
    methods: {
      DELETE: (request, context, { name }) => handleEraseUser(request, context, { id: decodePath(name) }),
    },
    isListed: false,
  },
  {
    path: '/admin/erasures/:id',
    prefixesBesideSite: ['/v1'],
    methods: { GET: handleShowErasure },
    isListed: false,
  },
  {
    path: '/admin/users/:name/export',
    prefixesBesideSite: ['/v1'],
    methods: {
      GET: (request, context, { name }) => handleExportUser(request, context, { id: decodePath(name) }),
    },
    isListed: false,
  },
];
