/** What breaks of the prompt cache cost: by cause, and by app. */
import type { Row } from '../../api/types.ts';
import { causeTitle, isBreak } from '../../format/caches.ts';
import { money } from '../../format/numbers.ts';
import { type Column, numberColumn, Table } from '../../parts/table.tsx';

const PAGE = [10, 100] as const;

interface LostProps {
  readonly byCause: readonly Row[];
  readonly byApp: readonly Row[];
  readonly currency: string;
}

export function Lost({ byCause, byApp, currency }: LostProps) {
  const format = (amount: number) => money(amount, currency);
  const amounts: readonly Column<Row>[] = [
    numberColumn('Requests', ({ requests }) => requests),
    numberColumn('Spend', ({ cost }) => cost[currency] ?? 0, format),
    numberColumn('Tokens lost', ({ lost_tokens = 0 }) => lost_tokens),
    numberColumn('Lost', ({ lost_cost = {} }) => lost_cost[currency] ?? 0, format),
  ];
  const causes = byCause.filter(({ cache_cause = '' }) => isBreak(cache_cause));
  if (causes.length === 0) return null;
  return (
    <>
      <Table
        title
        label="Lost to cache breaks, by cause"
        columns={[
          {
            head: 'Cause',
            value: ({ cache_cause = '' }) => cache_cause,
            cell: ({ cache_cause = '' }) => causeTitle(cache_cause),
          },
          ...amounts,
        ]}
        items={causes}
        sortedBy="-Lost"
        page={PAGE}
        idOf={({ cache_cause = '' }) => cache_cause}
      />
      <Table
        title
        label="Lost to cache breaks, by app"
        columns={[
          { head: 'App', value: ({ app = '' }) => app, cell: ({ app = '' }) => <bdi>{app || 'none'}</bdi> },
          ...amounts,
        ]}
        items={byApp.filter(({ lost_tokens = 0 }) => lost_tokens > 0)}
        sortedBy="-Lost"
        page={PAGE}
        idOf={({ app = '' }) => app}
      />
    </>
  );
}
