/** The data of users in KV: keys that fix a user, tokens that are bound to one, and records with `LEDGER=kv`. */
import { listKeys, writeKey } from '../auth/keys.ts';
import { listUsageTokens } from '../auth/usage-tokens.ts';
import type { RequestContext, UserLine, UserStore } from '../http/context.ts';
import { listRecords, MAX_REPORT_LISTINGS, readRecords } from '../metering/kv-ledger.ts';
import { omit } from '../shared/json.ts';

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
};

async function keysOf({ ports: { store } }: Pick<RequestContext, 'ports'>, names: readonly string[]) {
  const [{ keys }, tokens] = await Promise.all([listKeys(store), listUsageTokens(store)]);
  const isOf = (user: string | undefined) => user !== undefined && names.includes(user.trim());
  return {
    keys: keys.filter(({ user }) => isOf(user)),
    tokens: tokens.filter(({ filter }) => isOf(filter?.user)),
  };
}

/** Records in KV, also those from before `LEDGER=object`. */
export const RECORDS_OF_USERS: UserStore = {
  scope: 'all',
  read: async function* ({ ports: { store } }, names): AsyncGenerator<UserLine> {
    let cursor: string | null = null;
    for (let listing = 0; listing < MAX_REPORT_LISTINGS; listing++) {
      const page = await listRecords(store, cursor);
      const own = page.records.filter(({ user }) => user !== null && names.includes(user));
      for await (const record of readRecords(store, own)) yield { type: 'record', record };
      if (page.next === null) return;
      cursor = page.next;
    }
    throw new Error(`There are more records in KV than ${MAX_REPORT_LISTINGS} listings read`);
  },
};
