/** What happens now: requests in flight, spend today against the month, tokens a second, and the errors of the last ten minutes. */
import { useState } from 'preact/hooks';
import type {
  BudgetLimit,
  Deployment,
  Key,
  KeyStatus,
  RecordPage,
  Report,
  UsageRecord,
} from '../../api/types.ts';
import { type Series, Stack } from '../../charts/stack.tsx';
import { errorWords, STATUSES, statusWords } from '../../format/endings.ts';
import { compact, count, money, NONE, share, WAITING } from '../../format/numbers.ts';
import { moment, timeOfDay } from '../../format/times.ts';
import { zoneName } from '../../format/zone.ts';
import { Meter, Refresh } from '../../parts/controls.tsx';
import { Name } from '../../parts/name.tsx';
import { Trouble } from '../../parts/problem.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { readRange, spanOf, stepsOf } from '../../state/range.ts';
import { goTo, linkTo, type Params } from '../../state/route.ts';
import { useKeyNames, useSession } from '../../state/session.ts';
import { Newest } from '../keys/latest.tsx';
import { currenciesOf } from '../overview/metrics.ts';
import { sumsOf } from '../overview/series.ts';
import { hasFailed } from './anomalies.ts';
import { Anomalies, minuteOf } from './anomalies-list.tsx';
import { monthOf, monthSpan } from './month.ts';

const MINUTES = 10;
const SPAN_MS = MINUTES * 60_000;
/** The newest of them, from which rates are computed. */
const MAX_RECORDS = 1000;
const MAX_ERRORS = 20;

export function Now({ params }: { params: Params }) {
  const { api, isAdmin } = useSession();
  const { nameOf } = useKeyNames();
  const [refreshes, setRefreshes] = useState(0);
  const month = useLoad<Report>(
    (signal) => api.get('/v1/usage', { ...monthSpan(Date.now()), group_by: 'day' }, signal),
    [api],
    refreshes,
  );
  const recent = useLoad<RecordPage>(
    (signal) => {
      const query = { from: minuteOf(Date.now() - SPAN_MS), limit: String(MAX_RECORDS) };
      return api.get('/v1/usage/records', query, signal);
    },
    [api],
    refreshes,
  );
  const [currency = 'USD'] = currenciesOf(month.value?.total);
  const records = recent.value?.data ?? null;
  const refresh = () => setRefreshes((before) => before + 1);
  return (
    <>
      <div class="bar">
        <Refresh view="now" params={params} onRefresh={refresh} isUsual />
        {recent.loadedAt !== null && <span class="hint">As of {timeOfDay(recent.loadedAt)}</span>}
      </div>
      <Trouble of={{ ...recent, reload: refresh }} />
      {recent.problem === null && <Trouble of={{ ...month, reload: refresh }} />}
      <Anomalies filters={{}} currency={currency} nameOf={nameOf} refreshes={refreshes} />
      <div class="now">
        <InFlight refreshes={refreshes} />
        <Spend report={month.value} isLoading={month.isLoading} currency={currency} refreshes={refreshes} />
        <Figure
          name="Tokens a second"
          isLoading={recent.isLoading}
          value={records && compact(Math.round(tokensOf(records) / (SPAN_MS / 1000)))}
          hint={`prompts and outputs of the last ${MINUTES} minutes`}
        />
        <Figure
          name="Requests"
          isLoading={recent.isLoading}
          value={records && compact(records.length) + (records.length < MAX_RECORDS ? '' : ' or more')}
          hint={`that began in the last ${MINUTES} minutes`}
        />
        <Errors records={records} isLoading={recent.isLoading} />
      </div>
      {records !== null && <ErrorTable records={records} />}
      {isAdmin && <Limited refreshes={refreshes} />}
      <Hours refreshes={refreshes} />
      <Newest
        title="Last requests"
        filters={{}}
        reloads={refreshes}
        empty="No requests in the last 30 days"
      />
    </>
  );
}

/** The requests of each of the last hours, by how they ended. */
function Hours({ refreshes }: { refreshes: number }) {
  const { api } = useSession();
  const range = readRange({ range: '24h' });
  const { value, isLoading } = useLoad<Report>(
    (signal) => api.get('/v1/usage', { ...spanOf(range), group_by: 'hour,status' }, signal),
    [api, range.fromMs],
    refreshes,
  );
  // The view shows above that reports cannot be read.
  if (value === null) return isLoading ? <div class="chart waiting" /> : null;
  if (value.data.length === 0) return <p class="hint foot">No requests in the last 24 hours</p>;
  const series = STATUSES.map((status): Series => {
    const rows = value.data.filter((row) => row.status === status);
    const values = sumsOf(rows, range, ({ requests }) => requests);
    return { name: statusWords(status), group: status, colour: `status-${status}`, values };
  });
  return (
    <Stack
      label="Requests of 24 hours"
      steps={stepsOf(range)}
      series={series.filter(({ values }) => values.some(Boolean))}
      format={compact}
      isLines={false}
      onOpen={(hour, status) => goTo('requests', { hour, ...(status !== undefined && { status }) })}
      hrefOf={(status) => linkTo('requests', { range: '24h', status })}
    />
  );
}

interface FigureProps {
  readonly name: string;
  /** Null: not known. */
  readonly value: string | null;
  readonly isLoading: boolean;
  readonly hint: string;
  readonly isBad?: boolean;
}

function Figure({ name, value, isLoading, hint, isBad = false }: FigureProps) {
  return (
    <dl class={isBad ? 'bad' : ''}>
      <dt>{name}</dt>
      <dd>
        <span class="value">{value ?? (isLoading ? WAITING : NONE)}</span>
        <span class="hint">{hint}</span>
      </dd>
    </dl>
  );
}

/** For the admin, in the isolate that answers; for a key, as its limit counts them. */
function InFlight({ refreshes }: { refreshes: number }) {
  const { isAdmin, key } = useSession();
  if (isAdmin) return <InIsolate refreshes={refreshes} />;
  return key === null ? null : <OfKey refreshes={refreshes} />;
}

function InIsolate({ refreshes }: { refreshes: number }) {
  const { api } = useSession();
  const { value, isLoading } = useLoad<Pick<Deployment, 'in_flight'>>(
    (signal) => api.get('/v1/admin/status', { only: 'isolate' }, signal),
    [api],
    refreshes,
  );
  return (
    <Figure
      name="In flight"
      isLoading={isLoading}
      value={value && count(value.in_flight.requests)}
      hint="in the isolate that answered; others count their own"
    />
  );
}

function OfKey({ refreshes }: { refreshes: number }) {
  const { api } = useSession();
  const { value, isLoading } = useLoad<KeyStatus>(
    (signal) => api.get('/v1/key', {}, signal),
    [api],
    refreshes,
  );
  const { concurrent = null } = value ?? {};
  return (
    <Figure
      name="In flight"
      isLoading={isLoading}
      value={concurrent && count(concurrent.running)}
      hint={
        concurrent === null
          ? 'counted for keys with a limit of requests at once'
          : `of ${count(concurrent.limit)} of this key`
      }
    />
  );
}

interface SpendProps {
  readonly report: Report | null;
  readonly isLoading: boolean;
  readonly currency: string;
  readonly refreshes: number;
}

/** Today, the month so far, its forecast at the pace of the last seven days, and the monthly budgets. */
function Spend({ report, isLoading, currency, refreshes }: SpendProps) {
  const budget = useMonthlyBudget(currency, refreshes);
  if (report === null) return <Figure name="Spend today" value={null} isLoading={isLoading} hint="" />;
  const { today, spent, forecast } = monthOf(report.data, currency, Date.now());
  const format = (amount: number) => money(amount, currency);
  return (
    <dl class="wide">
      <dt>Spend today (UTC)</dt>
      <dd>
        <span class="value">{format(today)}</span>
        <span class="hint">
          {format(spent)} this month
          {forecast !== null && `, ${format(forecast)} at the pace of the last 7 days`}
        </span>
        {budget !== null && (
          <>
            <Meter
              label={`Spent this month ${format(spent)} of ${format(budget.limit)}`}
              spent={spent}
              reserved={Math.max(0, (forecast ?? spent) - spent)}
              limit={budget.limit}
            />
            <span class={forecast !== null && forecast > budget.limit ? 'failed' : 'hint'}>
              {forecast !== null && forecast > budget.limit ? 'more than ' : 'of '}
              {format(budget.limit)}: {budget.words}
            </span>
          </>
        )}
      </dd>
    </dl>
  );
}

interface MonthlyBudget {
  readonly limit: number;
  readonly words: string;
}

/** The sum of the monthly budgets of all keys, or the budget of the key that is signed in. Null: there is none in this currency. */
function useMonthlyBudget(currency: string, refreshes: number): MonthlyBudget | null {
  const { keys } = useKeyNames(refreshes);
  const { key } = useSession();
  if (key !== null) {
    const limit = monthlyLimit(key.limits ?? {}, currency);
    return limit === null ? null : { limit, words: 'the monthly budget of this key' };
  }
  const limits = keys.flatMap((one) => monthlyLimit(one, currency) ?? []);
  if (limits.length === 0) return null;
  const limit = limits.reduce((sum, one) => sum + one, 0);
  return { limit, words: `the monthly budgets of ${limits.length} of ${count(keys.length, 'key')}` };
}

function monthlyLimit({ budget = [] }: Pick<Key, 'budget'>, currency: string): number | null {
  const all: readonly BudgetLimit[] = [budget].flat();
  const monthly = all.find((one) => one.per === 'month' && typeof one[currency] === 'number');
  return monthly === undefined ? null : Number(monthly[currency]);
}

function tokensOf(records: readonly UsageRecord[]): number {
  return records.reduce((sum, { total_tokens }) => sum + total_tokens, 0);
}

interface ErrorsProps {
  readonly records: readonly UsageRecord[] | null;
  readonly isLoading: boolean;
}

function Errors({ records, isLoading }: ErrorsProps) {
  const failed = records?.filter(({ status }) => status === 'failed' || status === 'timed_out') ?? [];
  const outages = failed.filter(hasFailed).length;
  const callers = failed.length - outages;
  return (
    <Figure
      name="Errors"
      isLoading={isLoading}
      value={records && count(outages)}
      isBad={outages > 0}
      hint={[
        `in the last ${MINUTES} minutes`,
        records !== null && outages > 0 && `${share(outages / records.length)} of the requests`,
        callers > 0 && `and ${count(callers, 'mistake')} of callers`,
      ]
        .filter(Boolean)
        .join(', ')}
    />
  );
}

const ERRORS: readonly Column<UsageRecord>[] = [
  {
    head: 'Model',
    look: 'name',
    isMain: true,
    value: ({ asked }) => asked,
    cell: ({ asked }) => <Name text={asked} />,
  },
  {
    head: 'Time',
    isMain: true,
    value: ({ time }) => time,
    cell: ({ request_id, time }) => (
      <a href={linkTo('requests', { range: '24h', id: request_id })}>
        {moment(time)} {zoneName(Date.parse(time))}
      </a>
    ),
  },
  {
    head: 'Code',
    isMain: true,
    value: ({ error, error_code }) => error ?? error_code,
    cell: ({ error, error_code }) => <bdi class="code">{error ?? error_code}</bdi>,
  },
  { head: 'Reason', look: 'hint', value: ({ error }) => errorWords(error ?? '') },
];

function ErrorTable({ records }: { records: readonly UsageRecord[] }) {
  const failed = records.filter(({ status }) => status === 'failed' || status === 'timed_out');
  if (failed.length === 0) return null;
  return (
    <>
      <h2 class="foot">Errors of the last {MINUTES} minutes</h2>
      <Table
        label="Errors"
        columns={ERRORS}
        items={failed}
        idOf={({ request_id }) => request_id}
        page={[MAX_ERRORS, MAX_ERRORS]}
      />
    </>
  );
}

/** Keys whose requests at once are read. Each takes a call. */
const MAX_LIMITED = 10;

/** The keys that may run a number of requests at once: their ledger counts them, wherever they run. */
function Limited({ refreshes }: { refreshes: number }) {
  const { keys } = useKeyNames();
  const limited = keys.filter(({ max_concurrent }) => max_concurrent !== undefined);
  if (limited.length === 0) return null;
  return (
    <>
      <h2 class="foot">Requests at once, of keys that have a limit of them</h2>
      <ul class="running">
        {limited.slice(0, MAX_LIMITED).map((key) => (
          <Running key={key.id} of={key} refreshes={refreshes} />
        ))}
      </ul>
      {limited.length > MAX_LIMITED && (
        <p class="hint">
          The first {MAX_LIMITED} of {limited.length}. Keys has all.
        </p>
      )}
    </>
  );
}

function Running({ of: { id, name }, refreshes }: { of: Key; refreshes: number }) {
  const { api } = useSession();
  const { value, isLoading } = useLoad<KeyStatus>(
    (signal) => api.get(`/admin/keys/${id}`, {}, signal),
    [api, id],
    refreshes,
  );
  const { running, limit } = value?.concurrent ?? {};
  return (
    <li>
      <a href={linkTo('overview', { key: id })}>
        <Name text={name || id} title={id} />
      </a>{' '}
      {running === undefined || limit === undefined ? (
        <span class="hint">{isLoading ? WAITING : NONE}</span>
      ) : (
        <>
          {count(running)} of {count(limit)}
          <Meter label={`Requests of ${name || id} in flight`} spent={running} limit={limit} />
        </>
      )}
    </li>
  );
}
