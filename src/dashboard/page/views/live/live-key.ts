/** The credential of the live view: the signed-in key, or for the admin a new key that expires in an hour. */
import { Api } from '../../api/fetch-api.ts';
import type { Problem } from '../../api/problem.ts';
import type { Key, KeyStatus, List, NewKey } from '../../api/types.ts';
import type { Session } from '../../state/session.ts';

/** The name of the temporary keys. */
export const LIVE_NAME = 'Live view of the dashboard';
const LIFE_MS = 3_600_000;

export type LiveApi =
  | { readonly kind: 'api'; readonly api: Api }
  | { readonly kind: 'problem'; readonly problem: Problem }
  /** With AUTH=passthrough callers send their provider keys, and the admin has none. */
  | { readonly kind: 'passthrough' };

interface Made {
  readonly api: Api;
  readonly expiresAt: number;
}

const made = new WeakMap<Api, Made>();

export async function liveApi({ api, isAdmin }: Session, now = Date.now()): Promise<LiveApi> {
  if (!isAdmin) return { kind: 'api', api };
  const cachedKey = made.get(api);
  if (cachedKey !== undefined && cachedKey.expiresAt > now + 60_000)
    return { kind: 'api', api: cachedKey.api };
  await revokeExpired(api, now);
  const expiresAt = now + LIFE_MS;
  const body = { name: LIVE_NAME, expires_at: new Date(expiresAt).toISOString() };
  const answer = await api.send<NewKey>('POST', '/admin/keys', body);
  if (answer.kind === 'problem') return answer;
  const keyApi = new Api(answer.value.key);
  const standing = await keyApi.get<KeyStatus>('/v1/key');
  if (standing.kind === 'problem') return standing;
  const { id, created_at } = standing.value;
  if (created_at !== null) {
    made.set(api, { api: keyApi, expiresAt });
    return { kind: 'api', api: keyApi };
  }
  // This AUTH takes no gateway keys: it sends credentials on to providers, or needs none.
  await api.send('DELETE', `/admin/keys/${answer.value.id}`);
  return id === 'open' ? { kind: 'api', api: new Api('') } : { kind: 'passthrough' };
}

export function isOfLive({ name, expires_at }: Key): boolean {
  return name === LIVE_NAME && expires_at !== null;
}

/** Revokes the keys of earlier live views. Nothing else deletes them. */
async function revokeExpired(api: Api, now: number): Promise<void> {
  const keys = await api.get<List<Key>>('/admin/keys');
  if (keys.kind === 'problem') return;
  const expired = keys.value.data.filter(
    (key) => isOfLive(key) && key.expires_at !== null && Date.parse(key.expires_at) <= now,
  );
  await Promise.all(expired.map(({ id }) => api.send('DELETE', `/admin/keys/${id}`)));
}
