/** How much of a key's budget is spent, and the limits of a key in words. */
import type {
  BudgetLimit,
  BudgetLimits,
  BudgetUse,
  Key,
  KeyStatus,
  Limits,
  LimitUse,
  TopUp,
} from '../../api/types.ts';
import { amount, count, NONE, WAITING } from '../../format/numbers.ts';
import { exactTime } from '../../format/times.ts';
import { Meter } from '../../parts/controls.tsx';
import { Name } from '../../parts/name.tsx';
import { type Column, type Fact, Table } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { useSession } from '../../state/session.ts';

interface BudgetProps {
  readonly of: Pick<Key, 'id' | 'budget'>;
  /** Where its use is read. */
  readonly path: '/admin/keys' | '/v1/admin/teams';
  /** Incremented to load it again. */
  readonly reloads: number;
}

/** One line, whatever budgets the key has: the one that is nearest to its end. */
export function BudgetLine(props: BudgetProps) {
  return props.of.budget === undefined ? <span class="hint">no budget</span> : <LoadedLine {...props} />;
}

function LoadedLine({ of: key, path, reloads }: BudgetProps) {
  const { api } = useSession();
  const { value, problem } = useLoad<LimitUse>(
    (signal) => api.get(`${path}/${key.id}`, {}, signal),
    [api, key.id, JSON.stringify(key.budget)],
    reloads,
  );
  if (problem !== null) return <span class="hint">unknown right now</span>;
  if (value === null) return <span class="hint">{WAITING}</span>;
  const limits = budgetsOf(key.budget);
  const uses = value.budgets ?? (value.budget ? [value.budget] : []);
  const part = ({ spent, limit }: BudgetUse) => (limit > 0 ? spent / limit : 1);
  const [tightest] = uses.map((use, i) => ({ use, of: limits[i] })).sort((a, b) => part(b.use) - part(a.use));
  if (tightest === undefined) return <span class="hint">{NONE}</span>;
  const { spent, limit, reserved, unit } = tightest.use;
  const used = `${amount(spent, unit)} of ${amount(limit, unit)}`;
  const more = uses.length - 1;
  return (
    <span class="usage">
      <Meter label={`Spent ${used}`} {...{ spent, reserved, limit }} />
      {used} {periodInWords(tightest.of?.per ?? 'total')}
      {more > 0 && (
        <span class="hint" title={`and ${count(more, 'other budget')}`}>
          +{count(more)}
        </span>
      )}
    </span>
  );
}

const TOP_UPS: readonly Column<TopUp>[] = [
  { head: 'Time', value: ({ time }) => time, cell: ({ time }) => exactTime(time) },
  { head: 'By', look: 'name', value: ({ actor }) => actor, cell: ({ actor }) => <Name text={actor} /> },
  { head: 'Added', value: ({ add }) => amountsInWords(add) },
  { head: 'For', value: ({ period }) => period },
  { head: 'Note', value: ({ note }) => note, cell: ({ note }) => <bdi>{note || NONE}</bdi> },
];

/** What was added to the budgets of a key, or of a team. */
export function TopUps({ of: { top_ups = [] } }: { of: Pick<KeyStatus, 'top_ups'> }) {
  if (top_ups.length === 0) return null;
  return (
    <>
      <h2 class="foot">Top-ups</h2>
      <Table label="Top-ups" columns={TOP_UPS} items={top_ups} idOf={({ id }) => id} />
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
  if (!budget) return <span class="hint">{standing === null ? WAITING : NONE}</span>;
  const limits = budgetsOf(of);
  return (
    <>
      {(standing.budgets ?? [budget]).map((use, i) => (
        <BudgetBar key={String(i)} budget={use} of={limits[i]} />
      ))}
    </>
  );
}

/** What a budget does that is not hard. */
export const MODES: Readonly<Record<string, string>> = { warn: ', only warns', running: ', as output runs' };

function BudgetBar({ budget, of }: { readonly budget: BudgetUse; readonly of: BudgetLimit | undefined }) {
  const { per = 'total', mode = 'hard' } = of ?? {};
  const { unit, limit, added = 0, spent, reserved, remaining, unreported = 0, resets_at } = budget;
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
          {resets_at !== null && `, resets ${exactTime(resets_at)}`}
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
    budget ? ['Budget', <BudgetBars standing={use} of={of} />] : false,
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
    per_user !== undefined && `each user: ${allLimitsInWords(per_user)}`,
  ].filter((word) => word !== false);
  return words.length === 0 ? NONE : words.join(', ');
}

/** The budgets, too, which else have bars. */
export function allLimitsInWords(limits: Limits): string {
  const budgets = budgetsOf(limits.budget).map(
    ({ per, mode: _, ...amounts }) => `${amountsInWords(amounts)} ${periodInWords(per)}`,
  );
  const others = limitsInWords(limits);
  return [...budgets, ...(others === NONE && budgets.length > 0 ? [] : [others])].join(', ');
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

export function periodInWords(per: string): string {
  return PERIODS[per] ?? per;
}
