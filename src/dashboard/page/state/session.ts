/** The session: signing in, the stored token, and the names of keys. The token is kept in memory, and in sessionStorage on request. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { Api } from '../api/fetch-api.ts';
import type { Key, KeyStatus, Keys, List, Team } from '../api/types.ts';
import { useLoad } from './load.ts';

export interface Session {
  readonly api: Api;
  readonly isAdmin: boolean;
  /** The key that is signed in, or the caller of AUTH=open; null for the admin, and for a token that reads usage. */
  readonly key: KeyStatus | null;
  /** Who is signed in: the user of Access, `Admin`, or the name of the key. */
  readonly name: string;
}

export type SignIn =
  | { readonly kind: 'session'; readonly session: Session }
  | { readonly kind: 'refused' }
  | { readonly kind: 'offline' };

/** The role of the user whom Cloudflare Access has signed in: `admin` or `user`. Calls then need no token. */
const SIGNED_IN = document.documentElement.dataset.signedIn;

/** The name of that user. */
const USER = document.documentElement.dataset.user;

const STORED = 'weir-token';
const KEY_PREFIX = 'weir_';
/** Tokens that read usage. */
const READER_PREFIX = 'weir-usage_';

/** Signs in as admin or key. A refusal does not reveal whether the deployment has an admin token. */
export async function signIn(token: string): Promise<SignIn> {
  const api = new Api(token);
  const user = token === '' ? USER : undefined;
  const asAdmin = async (): Promise<SignIn> => {
    const keys = await api.get<Keys>('/admin/keys');
    if (keys.kind === 'answer')
      return { kind: 'session', session: { api, isAdmin: true, key: null, name: user ?? 'Admin' } };
    return keys.problem.kind === 'offline' ? { kind: 'offline' } : { kind: 'refused' };
  };
  const asKey = async (): Promise<SignIn> => {
    const key = await api.get<KeyStatus>('/v1/key');
    if (key.kind === 'answer') {
      const name = user ?? (key.value.name || key.value.id);
      return { kind: 'session', session: { api, isAdmin: false, key: key.value, name } };
    }
    return key.problem.kind === 'offline' ? { kind: 'offline' } : { kind: 'refused' };
  };
  const asReader = async (): Promise<SignIn> => {
    const usage = await api.get('/v1/usage/records', { limit: '1' });
    if (usage.kind === 'answer')
      return { kind: 'session', session: { api, isAdmin: false, key: null, name: 'Read only' } };
    return usage.problem.kind === 'offline' ? { kind: 'offline' } : { kind: 'refused' };
  };
  if (token.startsWith(READER_PREFIX)) return asReader();
  const attempts =
    token === ''
      ? [SIGNED_IN === 'admin' ? asAdmin : asKey]
      : token.startsWith(KEY_PREFIX)
        ? [asKey, asAdmin]
        : [asAdmin, asKey];
  let last: SignIn = { kind: 'refused' };
  for (const attempt of attempts) {
    last = await attempt();
    if (last.kind !== 'refused') return last;
  }
  return last;
}

/** The stored token; empty if the calls need none; null: the reader has to enter one. */
export function readStoredToken(): string | null {
  return sessionStorage.getItem(STORED) ?? (SIGNED_IN === undefined ? null : '');
}

/** The parameter of an address that has a token which reads usage. */
const LINK_TOKEN = 'token';

/** The address of a view that signs in with a token. It is behind `#`, which no browser sends to a server. */
export function sharedLink(hash: string, token: string): string {
  const query = new URLSearchParams({ [LINK_TOKEN]: token }).toString();
  return `${location.href.split('#')[0]}${hash}${hash.includes('?') ? '&' : '?'}${query}`;
}

/** Takes the token of a shared link out of the address; null: it has none. */
export function takeLinkToken(): string | null {
  const [view = '', query] = location.hash.split('?');
  const params = new URLSearchParams(query);
  const token = params.get(LINK_TOKEN);
  // A key or the admin token does not belong into an address.
  if (!token?.startsWith(READER_PREFIX)) return null;
  params.delete(LINK_TOKEN);
  history.replaceState(null, '', params.size === 0 ? view : `${view}?${params}`);
  return token;
}

/** Whether a shared link would replace more than another link: it may be anybody's. @param session null: not signed in, or not yet */
export function isMoreThanReader(session: Session | null): boolean {
  if (session !== null) return session.isAdmin || session.key !== null;
  const token = readStoredToken();
  return token !== null && !token.startsWith(READER_PREFIX);
}

export function storeToken(token: string): void {
  sessionStorage.setItem(STORED, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(STORED);
}

export interface SignedInSession extends Session {
  readonly signOut: () => void;
}

/** The session of the views below its provider. */
export const SessionContext = createContext<SignedInSession | null>(null);

export function useSession(): SignedInSession {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('Nobody is signed in');
  return session;
}

/** All teams, for the admin; empty while they are loading. */
export function useTeams(reloads: number): readonly Team[] {
  const { api } = useSession();
  const { value } = useLoad<List<Team>>((signal) => api.get('/v1/admin/teams', {}, signal), [api], reloads);
  return value?.data ?? [];
}

/** Records and reports have ids of keys, also of revoked ones. Only the admin may list their names. */
export interface KeyNames {
  readonly keys: readonly Key[];
  /** The name of a key, or its id where the name is unknown. */
  readonly nameOf: (id: string) => string;
}

const NO_KEYS: Keys = { object: 'list', data: [], tokens: [], revoked: [], budget_units: [] };

/** @param refreshes incremented to load them again */
export function useKeyNames(refreshes = 0): KeyNames {
  const { api, isAdmin } = useSession();
  const { value } = useLoad(
    async (signal) =>
      isAdmin ? api.get<Keys>('/admin/keys', {}, signal) : { kind: 'answer' as const, value: NO_KEYS },
    [api],
    refreshes,
  );
  const keys = value?.data ?? [];
  const names = new Map([...(value?.revoked ?? []), ...keys].map(({ id, name }) => [id, name]));
  return { keys, nameOf: (id) => names.get(id) || id };
}
