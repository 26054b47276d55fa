/** The table of groups, with their share of the selected metric. */
import type { ComponentChildren } from 'preact';
import type { GroupName, Row, Sums } from '../../api/types.ts';
import { statusWords } from '../../format/endings.ts';
import { count, milliseconds, money, NONE, rate, share } from '../../format/numbers.ts';
import { Name } from '../../parts/name.tsx';
import { type Column, numberColumn, Table } from '../../parts/table.tsx';
import { filterOf, groupLabel, OTHER, valueLabel } from '../../state/groups.ts';
import { linkTo, type Params } from '../../state/route.ts';
import { cachedShare, FAILED, type Metric, meanCost, type Ranked } from './metrics.ts';

interface GroupTableProps {
  readonly params: Params;
  readonly by: GroupName;
  readonly metric: Metric;
  readonly currency: string;
  readonly groups: readonly Ranked[];
  readonly total: Sums;
  readonly nameOf: (key: string) => string;
}

const PAGE = [50, 200] as const;

export function GroupTable({ params, by, metric, currency, groups, total, nameOf }: GroupTableProps) {
  const cost = (amount: number) => money(amount, currency);
  const all = metric.valueOf(total, currency);
  const number = (head: string, of: (row: Row) => number | null, write?: (value: number) => string) =>
    numberColumn<Ranked>(head, ({ row }) => of(row), write);
  const linked = (head: string, of: (row: Row) => number, filter: Params = {}): Column<Ranked> => ({
    ...number(head, of),
    cell: ({ id, row }) => {
      const isBad = of(row) > 0 && (head === 'Failed' || head === 'Truncated');
      const link = <RequestsLink {...{ params, by, id, filter }} value={of(row)} />;
      return isBad ? <span class="failed">{link}</span> : link;
    },
  });
  const isShared = !metric.lines && !metric.counts && metric.name !== 'refused';
  const columns: readonly Column<Ranked>[] = [
    {
      head: groupLabel(by),
      look: 'name',
      isMain: true,
      value: ({ id }) => labelOf(by, id, nameOf),
      cell: ({ id, colour }) => (
        <>
          {isShared && <span class={`swatch ${colour}`} aria-hidden="true" />}
          <GroupLink {...{ params, by, id }}>
            <Name title={id} text={labelOf(by, id, nameOf)} />
          </GroupLink>
        </>
      ),
    },
    {
      ...number('Cost', (row) => row.cost[currency] ?? null, cost),
      isMain: true,
      cell: ({ row }) =>
        row.cost[currency] === undefined ? <Unpriced row={row} /> : cost(row.cost[currency]),
    },
    ...(isShared
      ? [
          number(
            metric.name === 'spend' ? 'Share' : `Share of ${metric.label.toLowerCase()}`,
            (row) => (all > 0 ? metric.valueOf(row, currency) / all : null),
            share,
          ),
        ]
      : []),
    { ...linked('Requests', (row) => row.requests), isMain: true, unit: 'req.' },
    number('Cost each', (row) => meanCost(row.cost[currency], row.requests), cost),
    number('Tokens', (row) => row.total_tokens),
    number('Cached', cachedShare, share),
    linked('Failed', (row) => row.failed_requests, { status: FAILED }),
    linked('Truncated', (row) => row.cut_requests, { truncated: 'true' }),
    linked('Cancelled', (row) => row.cancelled_requests, { status: 'cancelled' }),
    number('First token', (row) => row.median_first_token_ms, milliseconds),
    number('Slowest 5%', (row) => row.p95_first_token_ms, milliseconds),
    number('Tokens a second', (row) => row.median_tokens_per_second, rate),
  ];
  return (
    <Table
      title
      label={`Use by ${groupLabel(by).toLowerCase()}`}
      columns={columns}
      items={groups}
      idOf={({ id }) => id}
      sortedBy={`-${metric.column}`}
      page={PAGE}
      onOpen={({ id }) => {
        const href = hrefOf(params, by, id);
        if (href !== null) location.hash = href;
      }}
      unfolds
      searched={({ id }) => `${id}\n${labelOf(by, id, nameOf)}`}
      note={
        groups.some(({ id }) => id === OTHER) &&
        `Search and order look at the ${count(groups.length - 1, 'group')} with a row. The report sums all others: narrow the view to see them.`
      }
    />
  );
}

function labelOf(by: GroupName, id: string, nameOf: (key: string) => string): string {
  return by === 'status' ? statusWords(id) : valueLabel(by, id, nameOf);
}

interface GroupLinkProps {
  readonly params: Params;
  readonly by: GroupName;
  readonly id: string;
  readonly children: ComponentChildren;
}

/** Leads to the models of a group, or to the statuses of a model. A session leads to its requests. */
function GroupLink({ params, by, id, children }: GroupLinkProps) {
  const href = hrefOf(params, by, id);
  return href === null ? children : <a href={href}>{children}</a>;
}

/** Null: no filter selects the requests of the group. */
function hrefOf(params: Params, by: GroupName, id: string): string | null {
  const filter = filterOf(by, id);
  if (filter === null) return null;
  return by === 'session' && id !== ''
    ? requestsOf(params, filter)
    : linkTo('overview', params, { ...filter, by: by === 'model' ? 'status' : 'model' });
}

function requestsOf({ by: _, metric: __, currency: ___, ...kept }: Params, filter: Params): string {
  return linkTo('requests', { ...kept, ...filter });
}

/** A group without a price is different from one without cost. */
function Unpriced({ row }: { row: Row }) {
  return row.unpriced_requests > 0 ? <span class="hint">no price</span> : NONE;
}

interface RequestsLinkProps {
  readonly params: Params;
  readonly by: GroupName;
  readonly id: string;
  readonly value: number;
  readonly filter: Params;
}

/** A number that links to the counted requests. */
function RequestsLink({ params, by, id, value, filter }: RequestsLinkProps) {
  const group = filterOf(by, id);
  if (value === 0 || group === null) return <>{count(value)}</>;
  return <a href={requestsOf(params, { ...group, ...filter })}>{count(value)}</a>;
}
