/** For the admin: what one user has used of its own limits, for each key that has limits of users. */
import type { Key, KeyStatus } from '../../api/types.ts';
import { Facts } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { useSession } from '../../state/session.ts';
import { limitFacts } from './budget.tsx';

/** Keys whose limits are shown. Each takes a call. */
const MAX_KEYS = 20;

export function UserLimits({ user, keys }: { user: string; keys: readonly Key[] }) {
  return (
    <>
      {keys
        .filter(({ per_user }) => per_user)
        .slice(0, MAX_KEYS)
        .map((key) => (
          <UserLimitsOfKey key={key.id} user={user} of={key} />
        ))}
    </>
  );
}

function UserLimitsOfKey({ user, of: { id, name } }: { user: string; of: Key }) {
  const { api } = useSession();
  const { value } = useLoad<KeyStatus>(
    (signal) => api.get(`/admin/keys/${id}`, { user }, signal),
    [api, id, user],
  );
  if (!value?.per_user) return null;
  return (
    <section>
      <h2 class="foot">
        Limits of <bdi>{value.per_user.user ?? 'requests without a user'}</bdi> with the key{' '}
        <bdi>{name || id}</bdi>
      </h2>
      <Facts facts={limitFacts(value.per_user, value.limits?.per_user?.budget)} />
    </section>
  );
}
