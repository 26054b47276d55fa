/** Who is signed in: the token lives in memory, and in the tab's storage where that was asked for (D2). */
import { Api } from '../api/fetch-api.ts';
import type { Key, List, Standing } from '../api/types.ts';

export interface Session {
  readonly api: Api;
  readonly isAdmin: boolean;
  /** The key that is signed in, or the one of AUTH=open; null for the admin. */
  readonly key: Standing | null;
}

export type SignIn =
  | { readonly kind: 'session'; readonly session: Session }
  | { readonly kind: 'refused' }
  | { readonly kind: 'offline' };

const STORED = 'weir-token';
const KEY_PREFIX = 'weir_';

/** Whose token it is; the same refusal whether a deployment has an admin token or not. */
export async function signIn(token: string): Promise<SignIn> {
  const api = new Api(token);
  const asAdmin = async (): Promise<SignIn> => {
    const keys = await api.get<List<Key>>('/admin/keys');
    if (keys.kind === 'answer') return { kind: 'session', session: { api, isAdmin: true, key: null } };
    return keys.problem.kind === 'offline' ? { kind: 'offline' } : { kind: 'refused' };
  };
  const asKey = async (): Promise<SignIn> => {
    const key = await api.get<Standing>('/v1/key');
    if (key.kind === 'answer') return { kind: 'session', session: { api, isAdmin: false, key: key.value } };
    return key.problem.kind === 'offline' ? { kind: 'offline' } : { kind: 'refused' };
  };
  const ways = token === '' ? [asKey] : token.startsWith(KEY_PREFIX) ? [asKey, asAdmin] : [asAdmin, asKey];
  let last: SignIn = { kind: 'refused' };
  for (const way of ways) {
    last = await way();
    if (last.kind !== 'refused') return last;
  }
  return last;
}

export function keptToken(): string | null {
  return sessionStorage.getItem(STORED);
}

export function keepToken(token: string): void {
  sessionStorage.setItem(STORED, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(STORED);
}
