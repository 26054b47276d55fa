/** What is spent of a key's budget, and what is left: asked for each key that has one. */
import type { BudgetLimit, Key, Standing } from '../../api/types.ts';
import { amount, NONE } from '../../format/numbers.ts';
import { Meter } from '../../parts/controls.tsx';
import { useLoad } from '../../state/load.ts';
import { useSession } from '../../state/use-session.ts';
import { periodInWords } from './words.ts';

export function Budget({ of: key }: { of: Key }) {
  return key.budget === undefined ? <span class="hint">{NONE}</span> : <Asked of={key} />;
}

function Asked({ of: key }: { of: Key }) {
  const { api } = useSession();
  const { value, problem } = useLoad<Standing>(
    (signal) => api.get(`/admin/keys/${key.id}`, {}, signal),
    [api, key.id, JSON.stringify(key.budget)],
  );
  if (problem !== null) return <span class="hint">not known right now</span>;
  return <BudgetBar standing={value} of={key.budget} />;
}

interface BudgetBarProps {
  /** Null while it is on its way. */
  readonly standing: Standing | null;
  readonly of: BudgetLimit | undefined;
}

export function BudgetBar({ standing, of }: BudgetBarProps) {
  const budget = standing?.budget;
  const { per = 'total', mode = 'hard' } = of ?? {};
  if (!budget) return <span class="hint">{standing === null ? '…' : NONE}</span>;
  const { unit, limit, spent, reserved, remaining } = budget;
  return (
    <div class="budget">
      <Meter
        label={`Spent ${amount(spent, unit)} of ${amount(limit, unit)}`}
        {...{ spent, reserved, limit }}
      />
      <span>
        {amount(spent, unit)} of {amount(limit, unit)} {periodInWords(per)}
        {reserved > 0 && <span class="hint"> · {amount(reserved, unit)} reserved</span>}
        <span class="hint">
          {' '}
          · {remaining > 0 ? `${amount(remaining, unit)} left` : 'used up'}
          {mode === 'warn' && ', only warns'}
        </span>
      </span>
    </div>
  );
}
