/** The page of one key, for the admin: what is left of its limits, who uses it, what was changed, its last requests and failures. */
import type { AuditPage, Key, KeyStatus, Report, Row } from '../../api/types.ts';
import { Stack } from '../../charts/stack.tsx';
import { count, milliseconds, money, NONE } from '../../format/numbers.ts';
import { date } from '../../format/times.ts';
import { utcDayOf } from '../../format/zone.ts';
import type { Action } from '../../parts/menu.tsx';
import { Name } from '../../parts/name.tsx';
import { Trouble } from '../../parts/problem.tsx';
import { type Column, Facts, numberColumn, Table } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { readRange, reportStep, spanOf, stepsOf } from '../../state/range.ts';
import { goTo, linkTo, type Params } from '../../state/route.ts';
import { useSession } from '../../state/session.ts';
import { columnsOf as auditColumns, useAuditNames } from '../audit/audit.tsx';
import { currenciesOf } from '../overview/metrics.ts';
import { sumsOf } from '../overview/series.ts';
import { allLimitsInWords, limitFacts, TopUps } from './budget.tsx';
import { Latest } from './latest.tsx';

const DAY_MS = 86_400_000;
const DAYS = 30;
const PEOPLE = '20';
const CHANGES = '10';

interface KeyPageProps {
  readonly of: Key;
  /** That of its team. */
  readonly teamName: string | undefined;
  /** What may be done with the key. */
  readonly actions: readonly Action[];
  /** Incremented to load again. */
  readonly reloads: number;
}

export function KeyPage({ of: key, teamName, actions, reloads }: KeyPageProps) {
  const { api } = useSession();
  const { id, name, models, expires_at, created_at, user, tags = {}, per_user } = key;
  const standing = useLoad<KeyStatus>(
    (signal) => api.get(`/admin/keys/${id}`, {}, signal),
    [api, id, JSON.stringify(key.budget)],
    reloads,
  );
  const tagNames = Object.entries(tags).map(([tag, value]) => `${tag}=${value}`);
  return (
    <>
      <p>
        <a href={linkTo('keys', {})}>All keys</a>
      </p>
      <h2 class="title">
        <bdi>{name || id}</bdi>
      </h2>
      <Actions of={actions} />
      <Trouble of={standing} />
      <div class="beside">
        <Facts
          facts={[
            ['Id', <bdi class="code">{id}</bdi>],
            ['Models', <bdi>{models?.join(', ') ?? 'all'}</bdi>],
            key.team !== undefined && [
              'Team',
              <a href={linkTo('keys', {}, { team: key.team })}>{teamName ?? key.team}</a>,
            ],
            user !== undefined && ['User', <bdi>{user}</bdi>],
            tagNames.length > 0 && ['Tags', <bdi>{tagNames.join(', ')}</bdi>],
            ...(standing.value === null ? [] : limitFacts(standing.value, key.budget)),
            key.max_output_tokens !== undefined && ['Max output tokens', count(key.max_output_tokens)],
            key.require_user === true && ['Requires', 'a user for each request'],
            per_user !== undefined && ['Each user', allLimitsInWords(per_user)],
            ['Created', date(created_at)],
            ['Expires', expires_at === null ? 'never' : date(expires_at)],
            key.disabled === true && ['State', 'disabled'],
          ]}
        />
        <Spending of={{ key: id }} reloads={reloads} />
      </div>
      {standing.value !== null && <TopUps of={standing.value} />}
      <Shards of={standing.value?.shards ?? {}} />
      <People of={{ key: id }} reloads={reloads} />
      <Changes of={{ key: id }} reloads={reloads} />
      <Latest filters={{ key: id }} />
    </>
  );
}

/** What may be done with a key, or a team, on its page. */
export function Actions({ of: actions }: { of: readonly Action[] }) {
  return (
    <p class="send">
      {actions.map(({ label, name, isDangerous, act }) => (
        <button key={label} type="button" class={isDangerous ? 'danger' : ''} aria-label={name} onClick={act}>
          {label}
        </button>
      ))}
    </p>
  );
}

interface SpendingProps {
  /** The filters that select the requests. */
  readonly of: Params;
  /** Incremented to load again. */
  readonly reloads: number;
}

/** What requests cost on each day; nothing where there were none. */
export function Spending({ of, reloads }: SpendingProps) {
  const { api } = useSession();
  const range = readRange({ range: `${DAYS}d` });
  const { value, isLoading } = useLoad<Report>(
    (signal) => api.get('/v1/usage', { ...spanOf(range), ...of, group_by: reportStep(range) }, signal),
    [api, JSON.stringify([spanOf(range), of])],
    reloads,
  );
  const [currency = 'USD'] = currenciesOf(value?.total);
  if (value === null) return isLoading ? <div class="chart waiting" /> : null;
  if (value.data.length === 0) return null;
  return (
    <Stack
      label={`Spend of ${DAYS} days`}
      steps={stepsOf(range)}
      series={[
        { name: 'All', colour: 'c0', values: sumsOf(value.data, range, ({ cost }) => cost[currency] ?? 0) },
      ]}
      format={(cost) => money(cost, currency)}
      isLines={false}
      onOpen={(day) => goTo('requests', { ...of, from: day, to: day })}
    />
  );
}

type Region = readonly [name: string, shards: number];

const SHARD_COLUMNS: readonly Column<Region>[] = [
  { head: 'Region', look: 'name', value: ([name]) => name, cell: ([name]) => <Name text={name} /> },
  { head: 'Ledger objects', look: 'num', value: ([, shards]) => shards, cell: ([, shards]) => count(shards) },
];

/** How a busy key is spread: a row for each region, with the number of its ledger objects. */
function Shards({ of }: { of: Readonly<Record<string, number>> }) {
  const regions = Object.entries(of);
  if (regions.length === 0) return null;
  const sum = regions.reduce((all, [, shards]) => all + shards, 0);
  return (
    <>
      <h2 class="foot">Spread over {count(sum, 'ledger object')}</h2>
      <Table label="Spread" columns={SHARD_COLUMNS} items={regions} idOf={([name]) => name} />
    </>
  );
}

interface PartProps {
  readonly of: { readonly key: string } | { readonly team: string };
  /** Incremented to load again. */
  readonly reloads: number;
}

/** The users of a key, or of a team, with the largest costs. */
export function People({ of, reloads }: PartProps) {
  const { api } = useSession();
  const now = Date.now();
  const query = {
    from: utcDayOf(now - (DAYS - 1) * DAY_MS),
    to: utcDayOf(now + DAY_MS),
    ...{ ...of, group_by: 'user', limit: PEOPLE },
  };
  const loaded = useLoad<Report>(
    (signal) => api.get('/v1/usage', query, signal),
    [api, JSON.stringify(query)],
    reloads,
  );
  const [currency = 'USD'] = currenciesOf(loaded.value?.total);
  const rows = loaded.value?.data ?? [];
  // The overview has no filter by team.
  const params = { range: `${DAYS}d`, ...('key' in of && of) };
  const columns: readonly Column<Row>[] = [
    {
      head: 'User',
      look: 'name',
      isMain: true,
      value: ({ user = '' }) => user,
      cell: ({ user = '' }) =>
        user === '' ? (
          'none'
        ) : (
          <a href={linkTo('overview', { ...params, user })}>
            <Name text={user} />
          </a>
        ),
    },
    {
      ...numberColumn<Row>(
        'Cost',
        ({ cost }) => cost[currency] ?? 0,
        (amount) => money(amount, currency),
      ),
      isMain: true,
    },
    { ...numberColumn<Row>('Requests', ({ requests }) => requests), isMain: true, unit: 'req.' },
    numberColumn(
      'Each request',
      ({ cost, requests }) => (cost[currency] ?? 0) / Math.max(1, requests),
      (amount) => money(amount, currency),
    ),
    numberColumn('Failed', ({ failed_requests }) => failed_requests),
    numberColumn('First token', ({ median_first_token_ms }) => median_first_token_ms, milliseconds),
  ];
  return (
    <>
      <h2 class="foot">
        {'key' in of ? <a href={linkTo('overview', { ...params, by: 'user' })}>People</a> : 'People'}
      </h2>
      <Trouble of={loaded} />
      {loaded.value === null && loaded.isLoading && <p class="hint">Loading …</p>}
      {loaded.value !== null && rows.length === 0 && <p class="hint">No requests in the last {DAYS} days</p>}
      {rows.length > 0 && (
        <Table
          label="People"
          columns={columns}
          items={rows}
          sortedBy="-Cost"
          idOf={({ user = '' }) => user}
        />
      )}
    </>
  );
}

/** The latest changes of a key, or of a team. */
export function Changes({ of, reloads }: PartProps) {
  const { api } = useSession();
  const names = useAuditNames(reloads);
  const loaded = useLoad<AuditPage>(
    (signal) => api.get('/v1/admin/audit', { limit: CHANGES, ...of }, signal),
    [api, JSON.stringify(of)],
    reloads,
  );
  const entries = loaded.value?.data ?? [];
  return (
    <>
      <h2 class="foot">
        <a href={linkTo('audit', { ...of })}>Changes</a>
      </h2>
      <Trouble of={loaded} />
      {loaded.value !== null && entries.length === 0 && <p class="hint">{NONE}</p>}
      {entries.length > 0 && (
        <Table
          label="Changes"
          columns={auditColumns(names, {}).filter(({ head }) => head !== 'Key or team')}
          items={entries}
          idOf={({ id }) => id}
          note={loaded.value?.has_more === true && `The latest ${count(entries.length)}.`}
        />
      )}
    </>
  );
}
