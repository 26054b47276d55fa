/** The table of groups, with their share of the selected metric. */
import { useState } from 'preact/hooks';
import type { GroupName, Row, Sums } from '../../api/types.ts';
import { FAILED, statusWords } from '../../format/endings.ts';
import { count, milliseconds, moneyFormat, NONE, rate, share } from '../../format/numbers.ts';
import { type Column, ShowMore, Table } from '../../parts/table.tsx';
import { linkTo, type Params } from '../../state/route.ts';
import type { Metric, Ranked } from './metrics.ts';

interface GroupTableProps {
  readonly params: Params;
  readonly by: GroupName;
  readonly metric: Metric;
  readonly currency: string;
  readonly groups: readonly Ranked[];
  readonly total: Sums;
  readonly nameOf: (key: string) => string;
}

const PAGE = 50;
const STEP = 200;
/** The grouping to which a click on a group leads. */
const NEXT: Readonly<Record<GroupName, GroupName>> = {
  provider: 'model',
  model: 'status',
  key: 'model',
  status: 'model',
};

export function GroupTable({ params, by, metric, currency, groups, total, nameOf }: GroupTableProps) {
  const [shown, setShown] = useState(PAGE);
  const cost = moneyFormat(
    currency,
    Math.max(0, ...groups.slice(0, PAGE).map(({ row }) => row.cost[currency] ?? 0)),
  );
  const all = metric.valueOf(total, currency);
  const number = (head: string, cell: Column<Ranked>['cell']): Column<Ranked> => ({
    head,
    look: 'num',
    cell,
  });
  const linked = (head: string, of: (row: Row) => number, status?: string) =>
    number(head, ({ id, row }) => <RequestsLink {...{ params, by, id, status }} value={of(row)} />);
  const columns: readonly Column<Ranked>[] = [
    {
      head: by,
      look: 'name',
      cell: ({ id, colour }) => (
        <>
          <span class={`swatch ${colour}`} aria-hidden="true" />
          <a href={linkTo('overview', params, { [by]: id, by: NEXT[by] })}>
            <bdi title={id}>{labelOf(by, id, nameOf)}</bdi>
          </a>
        </>
      ),
    },
    number('Cost', ({ row }) =>
      row.cost[currency] === undefined ? <Unpriced row={row} /> : cost(row.cost[currency]),
    ),
    number(metric.name === 'spend' ? 'Share' : `Share of ${metric.name}`, ({ row }) =>
      all > 0 ? share(metric.valueOf(row, currency) / all) : NONE,
    ),
    linked('Requests', (row) => row.requests),
    number('Tokens', ({ row }) => count(row.total_tokens)),
    linked('Failed', (row) => row.failed_requests, FAILED),
    number('Cut', ({ row }) => count(row.cut_requests)),
    linked('Cancelled', (row) => row.cancelled_requests, 'cancelled'),
    number('First token', ({ row }) => milliseconds(row.median_first_token_ms)),
    number('Tok/s', ({ row }) => rate(row.median_tokens_per_second)),
  ];
  return (
    <>
      <Table label={`Use by ${by}`} columns={columns} items={groups.slice(0, shown)} idOf={({ id }) => id} />
      <ShowMore left={groups.length - shown} step={STEP} onMore={() => setShown(shown + STEP)} />
    </>
  );
}

function labelOf(by: GroupName, id: string, nameOf: (key: string) => string): string {
  if (by === 'key') return nameOf(id);
  return by === 'status' ? statusWords(id) : id;
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
  readonly status: string | undefined;
}

/** A number that links to the counted requests, where the list of requests can filter them. */
function RequestsLink({ params, by, id, value, status }: RequestsLinkProps) {
  const { range = '', from = '', to = '', key = '', model = '', provider = '' } = params;
  if (value === 0 || by === 'provider' || provider !== '') return <>{count(value)}</>;
  const narrowed = { range, from, to, key, model, status: status ?? params.status ?? '', [by]: id };
  return <a href={linkTo('requests', narrowed)}>{count(value)}</a>;
}
