/** Failed requests by whose fault they are and by code: an outage is marked, a mistake of a caller is not. */
import type { Report, Row } from '../../api/types.ts';
import { errorWords } from '../../format/endings.ts';
import { type Column, numberColumn, Table } from '../../parts/table.tsx';
import { linkTo, type Params } from '../../state/route.ts';
import { FAILED } from './metrics.ts';

const PAGE = [20, 100] as const;

const FAULTS: Readonly<Record<string, string>> = {
  caller: 'the caller',
  deployment: 'this deployment',
  provider: 'the provider',
  gateway: 'the gateway',
};

const columnsOf = (params: Params): readonly Column<Row>[] => [
  {
    head: 'Fault of',
    value: ({ fault = '' }) => FAULTS[fault] ?? 'unknown',
    cell: ({ fault = '' }) => (
      <span class={fault === 'caller' ? '' : 'failed'}>{FAULTS[fault] ?? 'unknown'}</span>
    ),
  },
  {
    head: 'Code',
    value: ({ error = '' }) => error,
    cell: ({ fault = '', error = '' }) => (
      <a href={requestsOf(params, fault, error)}>
        <bdi class="code">{error || 'unknown'}</bdi>
      </a>
    ),
  },
  { head: 'Reason', look: 'hint limits', value: ({ error = '' }) => errorWords(error) },
  numberColumn('Failed', (row) => row.failed_requests),
];

/** The failed requests of a row. */
function requestsOf(params: Params, fault: string, error: string): string {
  // The overview's own parameters are none of the list's.
  const { by: _, metric: __, ...filters } = params;
  return linkTo('requests', filters, { status: FAILED, fault, error });
}

export function Why({ report, params }: { report: Report | null; params: Params }) {
  const rows = report?.data.filter((row) => row.failed_requests > 0) ?? [];
  if (rows.length === 0) return null;
  return (
    <Table
      title
      label="Why requests failed"
      columns={columnsOf(params)}
      items={rows}
      sortedBy="-Failed"
      page={PAGE}
      idOf={({ fault, error }) => `${fault} ${error}`}
      onOpen={({ fault = '', error = '' }) => {
        location.hash = requestsOf(params, fault, error);
      }}
    />
  );
}
