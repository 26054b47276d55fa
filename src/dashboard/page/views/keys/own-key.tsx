/** The view of the signed-in key: its models, limits and budget, and those of the calling user. */
import type { KeyStatus } from '../../api/types.ts';
import { count } from '../../format/numbers.ts';
import { date } from '../../format/times.ts';
import { Trouble } from '../../parts/problem.tsx';
import { Facts } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { useSession } from '../../state/session.ts';
import { limitFacts } from './budget.tsx';

export function OwnKey() {
  const { api } = useSession();
  const loaded = useLoad<KeyStatus>((signal) => api.get('/v1/key', {}, signal), [api]);
  const { value, isLoading, reload } = loaded;
  if (value === null) return isLoading ? <p class="hint">Loading …</p> : <Trouble of={loaded} />;
  const { limits, per_user } = value;
  return (
    <>
      <Trouble of={loaded} />
      <Facts
        facts={[
          ['Name', <bdi>{value.name || value.id}</bdi>],
          ['Models', <bdi>{value.models?.join(', ') ?? 'all'}</bdi>],
          ['Expires', value.expires_at === null ? 'never' : date(value.expires_at)],
          ...limitFacts(value, limits?.budget),
          limits?.max_output_tokens && ['Max output tokens', count(limits.max_output_tokens)],
          limits === null && ['Limits', 'none'],
        ]}
      />
      {per_user && (
        <>
          <h2>
            Limits of <bdi>{per_user.user ?? 'requests without a user'}</bdi>
          </h2>
          <Facts facts={limitFacts(per_user, limits?.per_user?.budget)} />
        </>
      )}
      <button type="button" onClick={reload}>
        Refresh
      </button>
    </>
  );
}
