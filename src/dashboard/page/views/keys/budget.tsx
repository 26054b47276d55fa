/** How much of a key's budget is spent, and the limits of a key in words. */
import type { BudgetLimit, Key, KeyStatus, Limits, LimitUse } from '../../api/types.ts';
import { amount, count, NONE } from '../../format/numbers.ts';
import { exactTime } from '../../format/times.ts';
import { Meter } from '../../parts/controls.tsx';
import type { Fact } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { useSession } from '../../state/session.ts';

interface BudgetProps {
  readonly of: Key;
  /** Incremented to load it again. */
  readonly reloads: number;
}

export function Budget({ of: key, reloads }: BudgetProps) {
  return key.budget === undefined ? (
    <span class="hint">{NONE}</span>
  ) : (
    <LoadedBudget of={key} reloads={reloads} />
  );
}

function LoadedBudget({ of: key, reloads }: BudgetProps) {
  const { api } = useSession();
  const { value, problem } = useLoad<KeyStatus>(
    (signal) => api.get(`/admin/keys/${key.id}`, {}, signal),
    [api, key.id, JSON.stringify(key.budget)],
    reloads,
  );
  if (problem !== null) return <span class="hint">unknown right now</span>;
  return <BudgetBar standing={value} of={key.budget} />;
}

interface BudgetBarProps {
  /** Null while it is loading. */
  readonly standing: LimitUse | null;
  readonly of: BudgetLimit | undefined;
}

function BudgetBar({ standing, of }: BudgetBarProps) {
  const budget = standing?.budget;
  const { per = 'total', mode = 'hard' } = of ?? {};
  if (!budget) return <span class="hint">{standing === null ? '…' : NONE}</span>;
  const { unit, limit, spent, reserved, remaining, unreported = 0 } = budget;
  return (
    <div class="budget">
      <Meter
        label={`Spent ${amount(spent, unit)} of ${amount(limit, unit)}`}
        {...{ spent, reserved, limit }}
      />
      <span>
        {amount(spent, unit)} of {amount(limit, unit)} {periodInWords(per)}
        {unreported > 0 && (
          <span class="hint">
            {' '}
            · {amount(unreported, unit)} at the upper bound: the provider reported no usage
          </span>
        )}
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

/** The use of each limit, as facts. */
export function limitFacts(use: LimitUse, of: BudgetLimit | undefined): readonly (Fact | false)[] {
  const { budget, requests, tokens, concurrent } = use;
  const usedOf = (name: string, used: number, limit: number): Fact => [
    name,
    <div class="budget">
      <Meter label={name} spent={used} limit={limit} />
      {count(used)} of {count(limit)}
    </div>,
  ];
  return [
    budget
      ? [
          'Budget',
          <>
            <BudgetBar standing={use} of={of} />
            {budget.resets_at !== null && <span class="hint">resets {exactTime(budget.resets_at)}</span>}
          </>,
        ]
      : false,
    requests ? usedOf('Requests a minute', requests.limit - requests.remaining, requests.limit) : false,
    tokens ? usedOf('Tokens a minute', tokens.limit - tokens.remaining, tokens.limit) : false,
    concurrent ? usedOf('Requests at once', concurrent.running, concurrent.limit) : false,
  ];
}

export function limitsInWords(limits: Limits): string {
  const { rpm, tpm, max_concurrent, max_output_tokens, per_user } = limits;
  const words = [
    rpm !== undefined && `${count(rpm)} requests/min`,
    tpm !== undefined && `${count(tpm)} tokens/min`,
    max_concurrent !== undefined && `${count(max_concurrent)} at once`,
    max_output_tokens !== undefined && `${count(max_output_tokens, 'output token')} at most`,
    per_user !== undefined && `each user: ${budgetInWords(per_user)}${limitsInWords(per_user)}`,
  ].filter((word) => word !== false);
  return words.length === 0 ? NONE : words.join(', ');
}

function budgetInWords({ budget }: Limits): string {
  const { per = '', mode: _, ...amounts } = budget ?? {};
  return Object.entries(amounts)
    .map(([unit, limit]) => `${amount(Number(limit), unit)} ${periodInWords(per)}, `)
    .join('');
}

const PERIODS: Readonly<Record<string, string>> = { day: 'a day', month: 'a month', total: 'in total' };

function periodInWords(per: string): string {
  return PERIODS[per] ?? per;
}
