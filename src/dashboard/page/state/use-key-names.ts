/** The names of keys, which the admin alone may list; records and reports have their ids. */
import type { Key, List } from '../api/types.ts';
import { useLoad } from './load.ts';
import { useSession } from './use-session.ts';

export interface KeyNames {
  readonly keys: readonly Key[];
  /** Its name, or the id where none is known. */
  readonly nameOf: (id: string) => string;
}

const NO_KEYS: List<Key> = { data: [] };

export function useKeyNames(): KeyNames {
  const { api, isAdmin } = useSession();
  const { value } = useLoad(
    async (signal) =>
      isAdmin ? api.get<List<Key>>('/admin/keys', {}, signal) : { kind: 'answer' as const, value: NO_KEYS },
    [api],
  );
  const keys = value?.data ?? [];
  const names = new Map(keys.map(({ id, name }) => [id, name]));
  return { keys, nameOf: (id) => names.get(id) || id };
}
