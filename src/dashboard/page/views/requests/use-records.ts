/** Loads the records of a list page by page. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Problem } from '../../api/problem.ts';
import type { RecordPage, UsageRecord } from '../../api/types.ts';
import { FAILURE_FILTERS, TEXT_FILTERS } from '../../state/groups.ts';
import { within } from '../../state/load.ts';
import { readRange, spanOf } from '../../state/range.ts';
import { type Params, pick } from '../../state/route.ts';
import { useSession } from '../../state/session.ts';

const PAGE = '50';
/** The requests of a session are read at once, as far as one page goes. */
const SESSION_PAGE = '1000';
/** Records that the page keeps and draws: further ones are found by a shorter range or a filter. */
const MAX_RECORDS = 2000;

interface Loaded {
  /** What the records were loaded for. */
  readonly query: string;
  readonly records: readonly UsageRecord[];
  /** When the last page arrived, in ms since the epoch. */
  readonly loadedAt: number | null;
  /** That of the next page. */
  readonly cursor: string | null;
  /** That of the page which could not be loaded, and why. */
  readonly failed: { readonly cursor: string | null; readonly problem: Problem } | null;
  readonly isLoading: boolean;
}

const NOTHING: Loaded = {
  query: '',
  records: [],
  loadedAt: null,
  cursor: null,
  failed: null,
  isLoading: true,
};

/** The filters that the API takes as they are. */
export const SENT = [
  ...TEXT_FILTERS,
  ...FAILURE_FILTERS,
  'team',
  'route',
  'client',
  'search',
  'truncated',
  'status',
];

/** The records that were loaded so far. */
export function useRecords(params: Params) {
  const { api, isAdmin } = useSession();
  const [loaded, setLoaded] = useState(NOTHING);
  const [reloads, setReloads] = useState(0);
  /** The number of the current list. A response for an earlier list is dropped. */
  const current = useRef(0);
  const { key } = params;
  const range = readRange(params);
  const query = {
    ...spanOf(range),
    ...pick(params, SENT),
    ...(key && isAdmin && { key }),
    limit: params.session ? SESSION_PAGE : PAGE,
  };
  const wanted = JSON.stringify([query, range.problem]);
  const readPage = async (cursor: string | null, list: number) => {
    setLoaded((before) => ({ ...before, query: wanted, isLoading: true }));
    const answer = await within(range, () =>
      api.get<RecordPage>('/v1/usage/records', { ...query, ...(cursor !== null && { cursor }) }),
    )();
    if (list !== current.current) return;
    setLoaded((before) =>
      answer.kind === 'problem'
        ? { ...before, isLoading: false, failed: { cursor, problem: answer.problem } }
        : {
            query: wanted,
            records: [...(cursor === null ? [] : before.records), ...answer.value.data],
            loadedAt: Date.now(),
            cursor: answer.value.next_cursor,
            failed: null,
            isLoading: false,
          },
    );
  };
  useEffect(() => {
    current.current++;
    setLoaded(NOTHING);
    void readPage(null, current.current);
  }, [api, wanted]);
  // The records stay on screen while they are loaded again.
  useEffect(() => {
    if (reloads === 0) return;
    current.current++;
    void readPage(null, current.current);
  }, [reloads]);
  // Until the effect has run, the records are those of the earlier filters.
  const { records, loadedAt, cursor, failed, isLoading } = loaded.query === wanted ? loaded : NOTHING;
  const more = () => void readPage(cursor, current.current);
  const reload = () => setReloads((before) => before + 1);
  return {
    records,
    loadedAt,
    problem: failed?.problem ?? null,
    isLoading,
    hasMore: cursor !== null && records.length < MAX_RECORDS,
    /** There are more than the page keeps. */
    isFull: cursor !== null && records.length >= MAX_RECORDS,
    more,
    reload,
    retry: failed?.cursor ? more : reload,
  };
}
