/** The data of users in KV: keys that fix a user, tokens that are bound to one, and records with `LEDGER=kv`. */
import { revokeKeyOf, revokeToken } from '../api/keys.ts';
import { type GatewayKey, listKeys, secretsOf, writeKey } from '../auth/keys.ts';
import { listUsageTokens } from '../auth/usage-tokens.ts';
import type { RequestContext, UserLine, UserStore } from '../http/context.ts';
import { isErased } from '../http/erasure.ts';
import { forgetUser, listRecords, MAX_REPORT_LISTINGS, readRecords } from '../metering/kv-ledger.ts';
import type { RecordSummary } from '../metering/record.ts';
import { requestId } from '../metering/time.ts';
import { omit } from '../shared/json.ts';
import { ERASED } from '../shared/limits.ts';

/** Gateway keys that fix the user, and tokens that read the usage of the user alone. */
export const KEYS_OF_USERS: UserStore = {
  scope: 'all',
  read: async function* (context, names): AsyncGenerator<UserLine> {
    const { keys, tokens } = await keysOf(context, names);
    for (const key of keys) {
      const { id, ...fields } = omit(writeKey(key, context.arrivedAt), 'user');
      yield { type: 'key', fields: { key_id: id, ...fields } };
    }
    for (const { id, name, expires_at, created_at } of tokens)
      yield { type: 'token', fields: { id, name, expires_at, created_at } };
  },
  // A key that fixes the user is the user's own: it is revoked, and so is a token that is bound to the user.
  erase: async (context, { names }) => {
    const { keys, tokens } = await keysOf(context, names);
    const { clock, random } = context.ports;
    for (const one of [...keys, ...tokens].slice(0, MAX_REVOKED)) {
      // Each entry of the audit has the id of its request.
      const requestContext = { ...context, requestId: requestId(clock.now(), random()) };
      await ('scope' in one
        ? revokeToken(requestContext, { ...one, name: ERASED, filter: null })
        : revokeOwnKey(requestContext, one));
    }
    const revoked = [...keys, ...tokens].slice(0, MAX_REVOKED).map(({ id }) => id);
    const counts = {
      keys: keys.filter(({ id }) => revoked.includes(id)).length,
      tokens: tokens.filter(({ id }) => revoked.includes(id)).length,
    };
    const isWhole = revoked.length === keys.length + tokens.length;
    return { next: isWhole ? null : 'more', calls: 5 + 6 * revoked.length, counts, ownKeys: revoked };
  },
};

/** Keys and tokens that one part of an erasure revokes. */
const MAX_REVOKED = 50;

function revokeOwnKey(context: RequestContext, key: GatewayKey): Promise<void> {
  return revokeKeyOf(context, key.id, { ...key, name: ERASED, user: undefined }, secretsOf(key));
}

async function keysOf({ ports: { store } }: Pick<RequestContext, 'ports'>, names: readonly string[]) {
  const [{ keys }, tokens] = await Promise.all([listKeys(store), listUsageTokens(store)]);
  const isOf = (user: string | undefined) => user !== undefined && names.includes(user.trim());
  return {
    keys: keys.filter(({ user }) => isOf(user)),
    tokens: tokens.filter(({ filter }) => isOf(filter?.user)),
  };
}

/** Records in KV, also those from before `LEDGER=object`. There are no sums in KV, so the records stay, without the user. */
export const RECORDS_OF_USERS: UserStore = {
  scope: 'all',
  read: async function* ({ ports: { store } }, names): AsyncGenerator<UserLine> {
    let cursor: string | null = null;
    for (let listing = 0; listing < MAX_REPORT_LISTINGS; listing++) {
      const page = await listRecords(store, cursor);
      const userRecords = page.records.filter(({ user }) => user !== null && names.includes(user));
      for await (const record of readRecords(store, userRecords)) yield { type: 'record', record };
      if (page.next === null) return;
      cursor = page.next;
    }
    throw new Error(`There are more records in KV than ${MAX_REPORT_LISTINGS} listings read`);
  },
  hasLate: true,
  erase: async ({ ports: { store } }, user, cursor) => {
    const page = await listRecords(store, cursor, MAX_LISTED);
    const userRecords: RecordSummary[] = [];
    for (const record of page.records) if (await isErased(record, user)) userRecords.push(record);
    const calls = await forgetUser(store, userRecords);
    return { next: page.next, calls: 1 + calls, counts: { records: userRecords.length } };
  },
};

/** Records that one part of an erasure lists. */
const MAX_LISTED = 400;

/** Finds the callers with records of the user, whose other stores are searched by their ids. Erases nothing. */
export const CALLERS_OF_USERS: UserStore = {
  scope: 'all',
  read: async function* () {},
  erase: async ({ ports: { store } }, { names }, cursor) => {
    const page = await listRecords(store, cursor);
    const userRecords = page.records.filter(({ user }) => user !== null && names.includes(user));
    return { next: page.next, calls: 1, callers: [...new Set(userRecords.map(({ key_id }) => key_id))] };
  },
};
