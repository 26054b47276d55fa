/** The kept responses of users: listed by the index of their key, read and deleted one by one. */

import { sha256 } from '../auth/keys.ts';
import type { UserLine, UserStore } from '../http/context.ts';
import type { MemoryGrant } from '../stream/memory.ts';
import { readGranted } from './request-memory.ts';
import { indexName, type KeptOfUser, type ResponseNamespace, repeatedCalls } from './response-calls.ts';

/** The responses that a user keeps. */
export function responsesOfUsers(namespace: ResponseNamespace): UserStore {
  const objects = repeatedCalls(namespace);

  async function* listKept(names: readonly string[], keyId: string): AsyncGenerator<KeptOfUser> {
    const owners = await ownersOf(names, keyId);
    const index = objects.getByName(indexName(keyId));
    let after = '';
    for (;;) {
      const kept = await index.keptOfUser(names, owners, after);
      yield* kept;
      const last = kept.at(-1);
      if (last === undefined) return;
      after = last.id;
    }
  }

  return {
    scope: 'key',
    read: async function* ({ takeMemory }, names, keyId): AsyncGenerator<UserLine> {
      for await (const { id, owner } of listKept(names, keyId)) {
        const object = objects.getByName(id);
        const grants: MemoryGrant[] = [];
        const jsonOf = (
          read: { readonly json: string; readonly grant: MemoryGrant } | 'no memory' | null,
        ) => {
          if (read === 'no memory')
            throw new Error('Other requests hold the memory that a kept response needs');
          if (read !== null) grants.push(read.grant);
          return read?.json ?? null;
        };
        try {
          const input = jsonOf(await readGranted((max) => object.input(owner, max), 'input', takeMemory));
          const response = jsonOf(
            await readGranted((max) => object.read(owner, max), 'response', takeMemory),
          );
          // Otherwise it expired or was deleted meanwhile.
          if (input !== null && response !== null) yield { type: 'response', keyId, id, input, response };
        } finally {
          for (const grant of grants) grant.release();
        }
      }
    },
    erase: async (_context, { names }, keyId, cursor) => {
      const index = objects.getByName(indexName(keyId));
      const kept = await index.keptOfUser(names, await ownersOf(names, keyId), cursor ?? '');
      const some = kept.slice(0, MAX_ERASED);
      for (const { id, owner } of some) {
        const object = objects.getByName(id);
        // `remove(null)` is the admin's: it also deletes an object whose rows cannot be read. Both end a background run first.
        if (!(await object.remove(owner))) await object.remove(null);
        await index.releaseKept(id);
      }
      const next = kept.length > some.length ? (some.at(-1)?.id ?? null) : null;
      return { next, calls: 1 + 2 * some.length, counts: { responses: some.length } };
    },
  };
}

/** Responses that one part of an erasure deletes. */
const MAX_ERASED = 100;

/** A user whom a key fixes is an owner by a digest of the name (`ownerOf` in routes.ts). */
function ownersOf(names: readonly string[], keyId: string): Promise<readonly string[]> {
  return Promise.all(names.map(async (name) => `${keyId} ${await sha256(name)}`));
}
