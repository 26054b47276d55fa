/**
 * The audit: who created, changed or revoked which gateway key. Each entry is written once, to KV and to the log. `GET /admin/audit`
 * lists them, the latest first.
 */

import type { UsageToken } from '../auth/key-views.ts';
import { type GatewayKey, putRevokedKey, renameRevokedKey, writeKey } from '../auth/keys.ts';
import { isUnreadable } from '../canonical/secret.ts';
import { forAdmin } from '../http/admin.ts';
import type { Ports, RequestContext, UserLine, UserStore } from '../http/context.ts';
import type { ParamValues } from '../http/query.ts';
import { jsonResponse } from '../http/respond.ts';
import type { FactNames } from '../http/users.ts';
import { DAY_MS, idTime, isoTime } from '../metering/time.ts';
import { isObject, type JsonObject, objectOf, readText } from '../shared/json.ts';
import { AUDIT_KEPT_DAYS, ERASED, MAX_BULK_GET } from '../shared/limits.ts';
import type { AuditAction, AuditEntry, AuditSubject } from './key-views.ts';
import { AUDIT_PARAMS } from './parameters.ts';

const AUDIT_KEPT_SECONDS = (AUDIT_KEPT_DAYS * DAY_MS) / 1000;

const PREFIX = 'audit/';
/** KV lists names in ascending order only. The time counts down in the names, so that the latest entry comes first. */
const LAST_MS = 0xffffffffffff;
const TIME_DIGITS = 12;
/** KV listings, of 1,000 names each, that one page reads: the 50,000 latest entries can be listed. */
const MAX_LISTINGS = 50;

type KeyAct = {
  readonly action: AuditAction;
  readonly before: GatewayKey | UsageToken | null;
  readonly after: GatewayKey | UsageToken | null;
} & ({ readonly keyId: string } | { readonly teamId: string });

/** Records a revocation, and keeps the key's name for listings. @param key null: it cannot be read */
export async function recordRevocation(
  context: RequestContext,
  keyId: string,
  key: GatewayKey | UsageToken | null,
): Promise<void> {
  const { name = '', created_at = '' } = key ?? {};
  const revoked = { id: keyId, name, created_at, revoked_at: isoTime(context.arrivedAt) };
  await Promise.all([
    recordAct(context, { action: 'key_revoked', keyId, before: key, after: null }),
    orLog(context, { key_id: keyId }, putRevokedKey(context.ports.store, revoked)),
  ]);
}

/**
 * Writes a change of a key to the log and to KV. It does not fail: the change is made already, and the log has all of it. A change
 * without a difference has no entry.
 */
export async function recordAct(
  context: RequestContext,
  { action, before, after, ...of }: KeyAct,
): Promise<void> {
  const { arrivedAt, users } = context;
  const [was, is] = await Promise.all([before, after].map((key) => shownKey(key, arrivedAt, users.names)));
  const isChange = action === 'key_changed' || action === 'team_changed';
  const changed = isChange ? changedFields(was ?? {}, is ?? {}) : [was, is];
  if (changed === null) return;
  const [from = null, to = null] = changed;
  const subject = 'keyId' in of ? { key_id: of.keyId } : { team: of.teamId };
  await recordEntry(context, subject, { action, before: from, after: to });
}

/** Records what was added to a budget. */
export function recordTopUp(
  context: RequestContext,
  subject: AuditSubject,
  added: JsonObject,
): Promise<void> {
  return recordEntry(context, subject, { action: 'budget_added', before: null, after: added });
}

async function recordEntry(
  context: RequestContext,
  subject: AuditSubject,
  facts: Pick<AuditEntry, 'action' | 'before' | 'after'>,
): Promise<void> {
  const { ports, requestId, arrivedAt, known } = context;
  const { action, before, after } = facts;
  const made = { id: requestId, time: isoTime(arrivedAt), actor: known.actor ?? '' };
  const entry: AuditEntry = { ...made, action, ...subject, before, after };
  const { id: request_id, time: _, action: _event, ...logged } = entry;
  ports.log({ event: action, request_id, ...logged });
  const options = { metadata: subject, expirationTtl: AUDIT_KEPT_SECONDS };
  await orLog(context, subject, ports.store.put(entryName(requestId), JSON.stringify(entry), options));
}

async function orLog(
  { ports, requestId }: Pick<RequestContext, 'ports' | 'requestId'>,
  subject: AuditSubject,
  written: Promise<void>,
): Promise<void> {
  try {
    await written;
  } catch (error) {
    const entry = { request_id: requestId, ...subject, reason: String(error) };
    ports.log({ event: 'audit_not_stored', ...entry });
  }
}

/** A key as responses show it, with its user as records have it. */
async function shownKey(
  key: GatewayKey | UsageToken | null,
  nowMs: number,
  names: FactNames,
): Promise<JsonObject | null> {
  // The key is changed already: while the name cannot be hashed, the entry has none.
  const userOf = async (name: string) => {
    const stored = await names.user(name);
    return isUnreadable(stored) ? null : stored;
  };
  if (key === null) return null;
  if ('scope' in key) {
    const { id: _, filter, ...token } = key;
    const user = filter?.user === undefined ? undefined : await userOf(filter.user);
    return { ...token, filter: filter && { ...filter, ...(user !== undefined && { user }) } };
  }
  const { id: _, ...shown } = writeKey(key, nowMs);
  return key.user === undefined ? shown : { ...shown, user: await userOf(key.user) };
}

/** The fields that differ, before and after; null where none does. A field that one of them does not have is null. */
function changedFields(before: JsonObject, after: JsonObject): readonly [JsonObject, JsonObject] | null {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => JSON.stringify(before[name] ?? null) !== JSON.stringify(after[name] ?? null),
  );
  const pick = (from: JsonObject) => Object.fromEntries(names.map((name) => [name, from[name] ?? null]));
  return names.length === 0 ? null : [pick(before), pick(after)];
}

function entryName(id: string): string {
  const left = (LAST_MS - idTime(id)).toString(16).padStart(TIME_DIGITS, '0');
  return `${PREFIX}${left}-${id}`;
}

/** The id in the name of an entry. */
function entryId(name: string): string {
  return name.slice(PREFIX.length + TIME_DIGITS + 1);
}

/** Entries that name the user: the one of a key, or the admin who made a change. */
export const AUDIT_OF_USERS: UserStore = {
  scope: 'all',
  read: async function* ({ ports: { store } }, names): AsyncGenerator<UserLine> {
    let cursor: string | null = null;
    for (let listing = 0; listing < MAX_LISTINGS; listing++) {
      const page: KVNamespaceListResult<unknown> = await store.list({ prefix: PREFIX, cursor });
      const entries = await readEntries(
        store,
        page.keys.map(({ name }) => name),
      );
      for (const entry of entries)
        if (isOfUser(entry, names) || entry.actor !== withoutUser(entry, names, []).actor)
          yield { type: 'audit', fields: entry };
      if (page.list_complete) return;
      cursor = page.cursor;
    }
    throw new Error(`The audit has more entries than ${MAX_LISTINGS} listings read`);
  },
  erase: async ({ ports: { store } }, { names, ownKeys }, cursor) => {
    const page = await store.list<unknown>({ prefix: PREFIX, cursor, limit: MAX_REWRITTEN });
    const countedKeys = new Set(ownKeys);
    let calls = 1 + Math.ceil(page.keys.length / MAX_BULK_GET);
    let audit = 0;
    const found = page.keys.map(({ name }) => name);
    const values = await readValues(store, found);
    // The latest first: the entry of a revocation says whose key it was before those of its earlier names are read.
    for (const { name, metadata, expiration } of page.keys) {
      const entry = values.get(name);
      if (!isObject(entry)) continue;
      const keyId = String(entry.key_id);
      if (isOfUser(entry, names)) countedKeys.add(keyId);
      const without = withoutUser(entry, names, [...countedKeys]);
      if (JSON.stringify(without) === JSON.stringify(entry)) continue;
      await store.put(name, JSON.stringify(without), { metadata, ...(expiration && { expiration }) });
      if (entry.action === 'key_revoked' && countedKeys.has(keyId))
        await renameRevokedKey(store, keyId, ERASED);
      calls += 3;
      audit++;
    }
    return {
      next: page.list_complete ? null : page.cursor,
      calls,
      counts: { audit },
      ownKeys: [...countedKeys],
    };
  },
};

/** Entries that one part of an erasure reads. */
const MAX_REWRITTEN = 100;

/** Whether an entry is of a key that fixed the user, or of a token that was bound to the user. */
function isOfUser({ before, after }: JsonObject, names: readonly string[]): boolean {
  const users = [before, after].map(objectOf).flatMap(({ user, filter }) => [user, objectOf(filter).user]);
  return users.some((user) => typeof user === 'string' && names.includes(user));
}

/** The fields of an entry that may name a person. */
const NAMING = ['user', 'actor'];

/** An entry without the names. @param ownKeys keys of the user, whose own names are erased, too */
function withoutUser(entry: JsonObject, names: readonly string[], ownKeys: readonly string[]): JsonObject {
  const isOwn = ownKeys.includes(String(entry.key_id));
  const replace = (value: unknown, field: string): unknown => {
    if (typeof value === 'string') {
      const isNamed = (NAMING.includes(field) && names.includes(value)) || (isOwn && field === 'name');
      return isNamed ? ERASED : value;
    }
    return isObject(value) ? replaceIn(value) : value;
  };
  const replaceIn = (object: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(object).map(([field, value]) => [field, replace(value, field)]));
  return replaceIn(entry);
}

/** `GET /admin/audit` */
export const handleListAudit = forAdmin(async (_request, { ports }, _id, query) => {
  const { names, hasMore } = await listNames(ports.store, query);
  const last = names.at(-1);
  return jsonResponse({
    object: 'list',
    data: await readEntries(ports.store, names),
    has_more: hasMore,
    next_cursor: hasMore && last !== undefined ? entryId(last) : null,
  });
}, AUDIT_PARAMS);

type AuditQuery = ParamValues<typeof AUDIT_PARAMS>;

/** The names of a page of entries. */
async function listNames(
  store: Ports['store'],
  { key: keyId, team, limit, cursor }: AuditQuery,
): Promise<{ readonly names: readonly string[]; readonly hasMore: boolean }> {
  const after = cursor === null ? PREFIX : entryName(cursor);
  const names: string[] = [];
  let next: string | null = null;
  for (let listing = 0; listing < MAX_LISTINGS; listing++) {
    const page: KVNamespaceListResult<unknown> = await store.list({ prefix: PREFIX, cursor: next });
    for (const { name, metadata } of page.keys) {
      const { key_id, team: ofTeam } = objectOf(metadata);
      const isOther = (keyId !== null && key_id !== keyId) || (team !== null && ofTeam !== team);
      if (name <= after || isOther) continue;
      if (names.length === limit) return { names, hasMore: true };
      names.push(name);
    }
    if (page.list_complete) break;
    next = page.cursor;
  }
  return { names, hasMore: false };
}

/** The entries with these names, in their order, without those that expired meanwhile. */
async function readEntries(store: Ports['store'], names: readonly string[]): Promise<readonly JsonObject[]> {
  const values = await readValues(store, names);
  return names.flatMap((name) => {
    const value = values.get(name);
    return isObject(value) && readText(value.action) !== undefined ? [value] : [];
  });
}

async function readValues(
  store: Ports['store'],
  names: readonly string[],
): Promise<ReadonlyMap<string, unknown>> {
  const all = new Map<string, unknown>();
  for (let from = 0; from < names.length; from += MAX_BULK_GET) {
    const some = names.slice(from, from + MAX_BULK_GET);
    const values: ReadonlyMap<string, unknown> = await store.get(some, 'json');
    for (const [name, value] of values) all.set(name, value);
  }
  return all;
}
