/** The last requests and failures, of a key, a team or of all. */
import type { RecordPage } from '../../api/types.ts';
import { Trouble } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { useLoad } from '../../state/load.ts';
import { goTo, linkTo, type Params } from '../../state/route.ts';
import { useKeyNames, useSession } from '../../state/session.ts';
import { FAILED } from '../overview/metrics.ts';
import { columnsOf } from '../requests/columns.tsx';

const LATEST = '5';
const DAYS = 30;
const DAY_MS = 24 * 3_600_000;

/** The newest requests and failures among those that the filters select. */
export function Latest({ filters, reloads = 0 }: Pick<NewestProps, 'filters' | 'reloads'>) {
  return (
    <>
      <Newest
        title="Last requests"
        {...{ filters, reloads }}
        empty={`No requests in the last ${DAYS} days`}
      />
      <Newest
        title="Last failures"
        filters={{ ...filters, status: FAILED }}
        reloads={reloads}
        empty={`No failures in the last ${DAYS} days`}
      />
    </>
  );
}

interface NewestProps {
  readonly title: string;
  readonly filters: Params;
  /** Incremented to load again. */
  readonly reloads?: number;
  readonly empty: string;
}

/** A row opens its record in the list. */
export function Newest({ title, filters, reloads = 0, empty }: NewestProps) {
  const { api } = useSession();
  const names = useKeyNames();
  const from = new Date(Date.now() - (DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
  const loaded = useLoad<RecordPage>(
    (signal) => api.get('/v1/usage/records', { from, limit: LATEST, ...filters }, signal),
    [api, from, JSON.stringify(filters)],
    reloads,
  );
  const params = { range: `${DAYS}d`, ...filters };
  const records = loaded.value?.data ?? [];
  return (
    <>
      <h2 class="foot">
        <a href={linkTo('requests', params)}>{title}</a>
      </h2>
      {/* Once there are records, the view itself shows that a refresh has failed. */}
      {loaded.value === null && <Trouble of={loaded} />}
      {loaded.value === null && loaded.isLoading && <p class="hint">Loading …</p>}
      {loaded.value !== null && records.length === 0 && <p class="hint">{empty}</p>}
      {records.length > 0 && (
        <Table
          label={title}
          columns={columnsOf(params, names, false, records)}
          items={records}
          idOf={({ request_id }) => request_id}
          onOpen={({ request_id }) => goTo('requests', params, { id: request_id })}
        />
      )}
    </>
  );
}
