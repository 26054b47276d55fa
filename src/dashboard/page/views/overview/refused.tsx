/** Counts of requests that were refused before any provider was called, by reason and, for the admin, by key. */
import type { RefusalRow, Refusals } from '../../api/types.ts';
import { count } from '../../format/numbers.ts';
import { type Column, Table } from '../../parts/table.tsx';

const PAGE = [50, 200] as const;

/** The meaning of each error code. */
const REASONS: Readonly<Record<string, string>> = {
  invalid_api_key: 'no key, or a wrong, revoked or expired one',
  model_not_allowed: 'a model that the key may not use',
  model_not_found: 'an unknown model',
  not_found: 'an unknown path',
  rate_limited: "the key's own rate limit",
  budget_exceeded: "the key's budget",
  invalid_request: 'a mistake in the request',
  request_too_large: 'a body above MAX_REQUEST_BYTES',
};

interface RefusedProps {
  readonly refusals: Refusals;
  /** Null: all requests are the signed-in key's. */
  readonly nameOf: ((id: string) => string) | null;
}

export function Refused({ refusals: { data }, nameOf }: RefusedProps) {
  if (data.length === 0) return null;
  const columns: readonly Column<RefusalRow>[] = [
    { head: 'Code', value: ({ code }) => code, cell: ({ code }) => <bdi class="code">{code}</bdi> },
    { head: 'Reason', look: 'hint', value: ({ code = '' }: RefusalRow) => REASONS[code] },
    ...(nameOf === null
      ? []
      : [
          {
            head: 'Key',
            look: 'name',
            value: ({ key = '' }: RefusalRow) => nameOf(key),
            cell: keyCell(nameOf),
          },
        ]),
    {
      head: 'Refused',
      look: 'num',
      value: (row) => row.refused_requests,
      cell: (row) => count(row.refused_requests),
    },
  ];
  return (
    <>
      <h2 class="foot">Refused requests</h2>
      <Table
        label="Refused requests"
        columns={columns}
        items={data}
        sortedBy="-Refused"
        page={PAGE}
        idOf={({ code, key }) => `${code} ${key}`}
      />
    </>
  );
}

function keyCell(nameOf: (id: string) => string) {
  return ({ key = '' }: RefusalRow) => <bdi title={key}>{key === 'none' ? 'unknown' : nameOf(key)}</bdi>;
}
