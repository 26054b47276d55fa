/** How much of a key's budget is spent, and the limits of a key in words. */
import type {
  BudgetLimit,
  BudgetLimits,
  BudgetUse,
  Key,
  KeyStatus,
  Limits,
  LimitUse,
} from '../../api/types.ts';
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
  return (
    <>
      <BudgetBars standing={value} of={key.budget} />
      {value?.top_ups?.map(({ id, time, actor, add, note }) => (
        <p key={id} class="hint">
          {amountsInWords(add)} added by <bdi>{actor}</bdi>, {exactTime(time)}
          {note !== '' && (
            <>
              : <bdi>{note}</bdi>
            </>
          )}
        </p>
      ))}
    </>
  );
}

export function budgetsOf(budget: BudgetLimits): readonly BudgetLimit[] {
  return budget === undefined ? [] : [budget].flat();
}

interface BudgetBarsProps {
  /** Null while it is loading. */
  readonly standing: LimitUse | null;
  readonly of: BudgetLimits;
}

function BudgetBars({ standing, of }: BudgetBarsProps) {
  const budget = standing?.budget;
  if (!budget) return <span class="hint">{standing === null ? '…' : NONE}</span>;
  const limits = budgetsOf(of);
  return (
    <>
      {(standing.budgets ?? [budget]).map((use, i) => (
        <BudgetBar key={String(i)} budget={use} of={limits[i]} />
      ))}
    </>
  );
}

const MODES: Readonly<Record<string, string>> = { warn: ', only warns', running: ', as output runs' };

function BudgetBar({ budget, of }: { readonly budget: BudgetUse; readonly of: BudgetLimit | undefined }) {
  const { per = 'total', mode = 'hard' } = of ?? {};
  const { unit, limit, added = 0, spent, reserved, remaining, unreported = 0 } = budget;
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
        {added > 0 && <span class="hint"> · {amount(added, unit)} of it added</span>}
        {reserved > 0 && <span class="hint"> · {amount(reserved, unit)} reserved</span>}
        <span class="hint">
          {' '}
          · {remaining > 0 ? `${amount(remaining, unit)} left` : 'used up'}
          {MODES[mode]}
        </span>
      </span>
    </div>
  );
}

/** The use of each limit, as facts. */
export function limitFacts(use: LimitUse, of: BudgetLimits): readonly (Fact | false)[] {
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
            <BudgetBars standing={use} of={of} />
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
  return budgetsOf(budget)
    .map(({ per, mode: _, ...amounts }) => `${amountsInWords(amounts)} ${periodInWords(per)}, `)
    .join('');
}

function amountsInWords(amounts: Readonly<Record<string, number | string>>): string {
  return Object.entries(amounts)
    .map(([unit, value]) => amount(Number(value), unit))
    .join(', ');
}

const PERIODS: Readonly<Record<string, string>> = {
  day: 'a day',
  week: 'a week',
  month: 'a month',
  total: 'in total',
};

function periodInWords(per: string): string {
  return PERIODS[per] ?? per;
}
