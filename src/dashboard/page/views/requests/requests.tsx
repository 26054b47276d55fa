/** The list of requests, newest first, filtered by key, model or status. A request opens in a dialog. */
import { useEffect, useRef } from 'preact/hooks';
import type { Refusals } from '../../api/types.ts';
import { count } from '../../format/numbers.ts';
import { Trouble } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { useLoad, within } from '../../state/load.ts';
import { readRange, spanOf } from '../../state/range.ts';
import { goTo, linkTo, type Params, pick } from '../../state/route.ts';
import { useKeyNames, useSession } from '../../state/session.ts';
import { Refused } from '../overview/refused.tsx';
import { columnsOf } from './columns.tsx';
import { Filters, REFUSED } from './filters.tsx';
import { RecordDialog } from './record-dialog.tsx';
import { SessionCharts } from './session.tsx';
import { SENT, useRecords } from './use-records.ts';

export function Requests({ params }: { params: Params }) {
  return params.status === REFUSED ? <RefusedRequests params={params} /> : <Records params={params} />;
}

function RefusedRequests({ params }: { params: Params }) {
  const names = useKeyNames();
  const { api, isAdmin } = useSession();
  const range = readRange(params);
  const loaded = useLoad<Refusals>(
    within(range, (signal) => {
      const key = params.key && isAdmin ? { key: params.key } : {};
      const group_by = isAdmin ? 'code,key' : 'code';
      return api.get('/v1/usage/refusals', { ...spanOf(range), ...key, group_by }, signal);
    }),
    [api, isAdmin, JSON.stringify([spanOf(range), params.key, range.problem])],
  );
  const { value, reload } = loaded;
  return (
    <>
      <Filters params={params} names={names} records={[]} onRefresh={reload} />
      <Trouble of={loaded} />
      {value !== null && <Refused refusals={value} nameOf={isAdmin ? names.nameOf : null} />}
      {value?.data.length === 0 && (
        <div class="empty">
          <strong>No refused requests in this range</strong>
        </div>
      )}
      <p class="hint foot">A refused request has no record. The log has a line for each (request_refused).</p>
    </>
  );
}

function Records({ params }: { params: Params }) {
  const names = useKeyNames();
  const { isAdmin } = useSession();
  const {
    records: loaded,
    loadedAt,
    problem,
    isLoading,
    hasMore,
    isFull,
    more,
    reload,
    retry,
  } = useRecords(params);
  const isSession = Boolean(params.session);
  // A session is read from its beginning.
  const records = isSession ? loaded.toReversed() : loaded;
  return (
    <>
      <Filters params={params} names={names} records={records} onRefresh={reload} />
      <Trouble of={{ value: records.length > 0 || null, loadedAt, problem, reload: retry }} />
      {isSession && records.length > 0 && (
        <SessionCharts records={records} onOpen={(id) => goTo('requests', params, { id })} />
      )}
      {records.length > 0 && (
        <Table
          label="Requests"
          columns={columnsOf(params, names, isAdmin, records)}
          items={records}
          idOf={({ request_id }) => request_id}
          onOpen={({ request_id }) => goTo('requests', params, { id: request_id })}
          note={
            (hasMore || isFull) &&
            `Columns order the ${count(records.length, 'request')} that are loaded, and CSV has them. Filters and Search look at all.`
          }
        />
      )}
      {records.length === 0 && !isLoading && problem === null && !hasMore && (
        <div class="empty">
          <strong>
            {hasFilters(params) ? 'No requests fit these filters in this range' : 'No requests in this range'}
          </strong>
          <p>Records show up within a minute after a request has ended.</p>
          {!hasFilters(params) && (
            <p>
              <a href={linkTo('live', {})}>Send a request in Live</a>
            </p>
          )}
        </div>
      )}
      {isFull && (
        <p class="more hint">
          The latest {count(records.length)}: a shorter range, a filter or Search finds earlier ones.
        </p>
      )}
      {problem === null && <More {...{ isLoading, hasMore, more }} />}
      {params.id && (
        <RecordDialog
          key={params.id}
          id={params.id}
          names={names}
          params={params}
          onClose={() => goTo('requests', params, { id: undefined })}
        />
      )}
    </>
  );
}

function hasFilters(params: Params): boolean {
  return Object.keys(pick(params, [...SENT, 'key', 'hour'])).length > 0;
}

interface MoreProps {
  readonly isLoading: boolean;
  readonly hasMore: boolean;
  readonly more: () => void;
}

/** Loads the next page when it scrolls into view, or on a click. */
function More({ isLoading, hasMore, more }: MoreProps) {
  const end = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    if (end.current === null || isLoading || !hasMore) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && more(), {
      rootMargin: '400px',
    });
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [isLoading, hasMore, more]);
  return (
    <p ref={end} class="more hint" aria-live="polite">
      {isLoading
        ? 'Loading …'
        : hasMore && (
            <button type="button" onClick={more}>
              Load more
            </button>
          )}
    </p>
  );
}
