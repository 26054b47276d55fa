/** The view of the signed-in key: its models, limits and budget. */
import type { KeyStatus } from '../../api/types.ts';
import { count } from '../../format/numbers.ts';
import { date, exactTime } from '../../format/times.ts';
import { Meter } from '../../parts/controls.tsx';
import { ProblemBox } from '../../parts/problem.tsx';
import { Facts } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { useSession } from '../../state/session.ts';
import { BudgetBar } from './budget.tsx';

export function OwnKey() {
  const { api } = useSession();
  const { value, problem, reload } = useLoad<KeyStatus>((signal) => api.get('/v1/key', {}, signal), [api]);
  if (problem !== null) return <ProblemBox problem={problem} onRetry={reload} />;
  if (value === null) return <p class="hint">Loading …</p>;
  const { limits, budget, requests, tokens, concurrent } = value;
  return (
    <>
      <Facts
        facts={[
          ['Name', <bdi>{value.name || value.id}</bdi>],
          ['Models', <bdi>{value.models?.join(', ') ?? 'all'}</bdi>],
          ['Expires', value.expires_at === null ? 'never' : date(value.expires_at)],
          budget && [
            'Budget',
            <>
              <BudgetBar standing={value} of={limits?.budget} />
              {budget.resets_at !== null && <span class="hint">resets {exactTime(budget.resets_at)}</span>}
            </>,
          ],
          requests && ['Requests a minute', rateOf(requests.limit - requests.remaining, requests.limit)],
          tokens && ['Tokens a minute', rateOf(tokens.limit - tokens.remaining, tokens.limit)],
          concurrent && ['Requests at once', rateOf(concurrent.running, concurrent.limit)],
          limits?.max_output_tokens && ['Max output tokens', count(limits.max_output_tokens)],
          limits === null && ['Limits', 'none'],
        ]}
      />
      <button type="button" onClick={reload}>
        Refresh
      </button>
    </>
  );
}

function rateOf(used: number, limit: number) {
  return (
    <div class="budget">
      <Meter label="Used" spent={used} limit={limit} />
      {count(used)} of {count(limit)}
    </div>
  );
}
