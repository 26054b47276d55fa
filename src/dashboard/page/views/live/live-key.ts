/** What the live view asks with: the signed-in key, or for the admin a key that is made for an hour (D6). */
import { Api, type Problem } from '../../api/fetch-api.ts';
import type { Key, List, NewKey, Standing } from '../../api/types.ts';
import type { Session } from '../../state/session.ts';

const NAME = 'Live view of the dashboard';
const LIFE_MS = 3_600_000;

export type LiveApi =
  | { readonly kind: 'api'; readonly api: Api }
  | { readonly kind: 'problem'; readonly problem: Problem }
  /** Callers bring their providers' own keys, and the admin has none. */
  | { readonly kind: 'passthrough' };

interface Made {
  readonly api: Api;
  readonly expiresAt: number;
}

const made = new WeakMap<Api, Made>();

export async function liveApi({ api, isAdmin }: Session, now = Date.now()): Promise<LiveApi> {
  if (!isAdmin) return { kind: 'api', api };
  const known = made.get(api);
  if (known !== undefined && known.expiresAt > now + 60_000) return { kind: 'api', api: known.api };
  await revokeExpired(api, now);
  const expiresAt = now + LIFE_MS;
  const body = { name: NAME, expires_at: new Date(expiresAt).toISOString() };
  const answer = await api.send<NewKey>('POST', '/admin/keys', body);
  if (answer.kind === 'problem') return answer;
  const own = new Api(answer.value.key);
  const standing = await own.get<Standing>('/v1/key');
  if (standing.kind === 'problem') return standing;
  const { id, created_at } = standing.value;
  if (created_at !== null) {
    made.set(api, { api: own, expiresAt });
    return { kind: 'api', api: own };
  }
  // It would be sent on as a provider's key, or is not asked for at all.
  await api.send('DELETE', `/admin/keys/${answer.value.id}`);
  return id === 'open' ? { kind: 'api', api: new Api('') } : { kind: 'passthrough' };
}

/** Those of earlier hours: nothing else takes them away. */
async function revokeExpired(api: Api, now: number): Promise<void> {
  const keys = await api.get<List<Key>>('/admin/keys');
  if (keys.kind === 'problem') return;
  const expired = keys.value.data.filter(
    ({ name, expires_at }) => name === NAME && expires_at !== null && Date.parse(expires_at) <= now,
  );
  await Promise.all(expired.map(({ id }) => api.send('DELETE', `/admin/keys/${id}`)));
}
