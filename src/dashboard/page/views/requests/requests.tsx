/** The list of requests, newest first, filtered by key, model or status. A request opens in a dialog. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Problem } from '../../api/fetch-api.ts';
import type { RecordPage, UsageRecord } from '../../api/types.ts';
import { FAILED, STATUSES, statusWords } from '../../format/endings.ts';
import { count, milliseconds, moneyFormat, NONE } from '../../format/numbers.ts';
import { moment, ZONE } from '../../format/times.ts';
import { RangePicker } from '../../parts/controls.tsx';
import { ProblemBox } from '../../parts/problem.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { within } from '../../state/load.ts';
import { readRange, spanOf } from '../../state/range.ts';
import { goTo, linkTo, type Params } from '../../state/route.ts';
import { type KeyNames, useKeyNames, useSession } from '../../state/session.ts';
import { RecordDialog } from './record-dialog.tsx';

const PAGE = '50';
const ID = /^[0-9a-f-]{36}$/;

export function Requests({ params }: { params: Params }) {
  const names = useKeyNames();
  const { isAdmin } = useSession();
  const { records, problem, isLoading, hasMore, more, reload } = useRecords(params);
  return (
    <>
      <Filters params={params} names={names} />
      {problem !== null && <ProblemBox problem={problem} onRetry={records.length === 0 ? reload : more} />}
      {records.length > 0 && (
        <Table
          label="Requests"
          columns={columnsOf(params, names, isAdmin, records)}
          items={records}
          idOf={({ request_id }) => request_id}
          lookOf={() => 'opens'}
          onOpen={({ request_id }) => goTo('requests', params, { id: request_id })}
        />
      )}
      {records.length === 0 && !isLoading && problem === null && !hasMore && (
        <div class="empty">
          <strong>No such requests in this range</strong>
          <p>Records show up within a minute after a request has ended.</p>
        </div>
      )}
      {problem === null && <More {...{ isLoading, hasMore, more }} />}
      {params.id && (
        <RecordDialog
          key={params.id}
          id={params.id}
          names={names}
          onClose={() => goTo('requests', params, { id: undefined })}
        />
      )}
    </>
  );
}

function Filters({ params, names }: { params: Params; names: KeyNames }) {
  const { isAdmin } = useSession();
  const [search, setSearch] = useState('');
  useEffect(() => setSearch(params.model ?? ''), [params.model]);
  const set = (name: string) => (event: Event & { currentTarget: HTMLSelectElement }) =>
    goTo('requests', params, { [name]: event.currentTarget.value });
  return (
    <div class="bar">
      <RangePicker view="requests" params={params} range={readRange(params)} />
      <label class="inline">
        Status{' '}
        <select value={params.status ?? ''} onChange={set('status')}>
          <option value="">any</option>
          {[...STATUSES, FAILED].map((status) => (
            <option key={status} value={status}>
              {statusWords(status)}
            </option>
          ))}
        </select>
      </label>
      {isAdmin && (
        <label class="inline">
          Key{' '}
          <select value={params.key ?? ''} onChange={set('key')}>
            <option value="">any</option>
            {params.key && !names.keys.some((key) => key.id === params.key) && <option>{params.key}</option>}
            {names.keys.map((key) => (
              <option key={key.id} value={key.id}>
                {key.name || key.id}
              </option>
            ))}
          </select>
        </label>
      )}
      <label class="inline">
        Model or id{' '}
        <input
          type="search"
          size={24}
          placeholder="provider/model or id"
          // In the state, because a render during typing would reset the field to the URL's text.
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
          onChange={(event) => {
            const text = event.currentTarget.value.trim();
            goTo('requests', params, ID.test(text) ? { id: text } : { model: text });
          }}
        />
      </label>
    </div>
  );
}

function columnsOf(
  params: Params,
  names: KeyNames,
  isAdmin: boolean,
  records: readonly UsageRecord[],
): readonly Column<UsageRecord>[] {
  // All amounts get the same number of decimals, so that the column is aligned.
  const largest = Math.max(0, ...records.map(({ cost }) => cost ?? 0));
  const number = (head: string, cell: Column<UsageRecord>['cell'], look = 'num wide') => ({
    head,
    look,
    cell,
  });
  const keyColumn: Column<UsageRecord> = {
    head: 'Key',
    look: 'name wide',
    cell: ({ key_id }) => <bdi title={key_id}>{names.nameOf(key_id)}</bdi>,
  };
  return [
    {
      head: `Time (${ZONE})`,
      cell: ({ request_id, time }) => (
        <a href={linkTo('requests', params, { id: request_id })}>{moment(time)}</a>
      ),
    },
    {
      head: 'Model',
      look: 'name',
      cell: ({ asked, provider, model }) => <bdi title={`${asked} → ${provider}/${model}`}>{asked}</bdi>,
    },
    ...(isAdmin ? [keyColumn] : []),
    { head: 'Status', cell: (record) => <StatusWord record={record} /> },
    number('Tokens in', ({ prompt_tokens }) => count(prompt_tokens)),
    number(
      'Tokens out',
      ({ completion_tokens, estimated }) => (estimated ? '~' : '') + count(completion_tokens),
    ),
    number('First token', ({ first_token_ms }) => milliseconds(first_token_ms)),
    number('Duration', ({ total_ms }) => milliseconds(total_ms), 'num'),
    number(
      'Cost',
      ({ cost, currency }) =>
        cost === null || currency === null ? NONE : moneyFormat(currency, largest)(cost),
      'num',
    ),
  ];
}

function StatusWord({ record: { status, error_code } }: { record: UsageRecord }) {
  return (
    <>
      <span class={`status ${status}`}>{statusWords(status)}</span>
      {error_code !== null && (
        <>
          {' '}
          <span class="hint code wide">
            <bdi>{error_code}</bdi>
          </span>
        </>
      )}
    </>
  );
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

interface Loaded {
  readonly records: readonly UsageRecord[];
  readonly cursor: string | null;
  readonly problem: Problem | null;
  readonly isLoading: boolean;
}

const NOTHING: Loaded = { records: [], cursor: null, problem: null, isLoading: true };

/** The records that were loaded so far. */
function useRecords(params: Params) {
  const { api, isAdmin } = useSession();
  const [loaded, setLoaded] = useState(NOTHING);
  const [reloads, setReloads] = useState(0);
  /** The number of the current list. A response for an earlier list is dropped. */
  const current = useRef(0);
  const { model, status, key } = params;
  const range = readRange(params);
  const query = {
    ...spanOf(range),
    ...(model && { model }),
    ...(status && { status }),
    ...(key && isAdmin && { key }),
    limit: PAGE,
  };
  const read = async (cursor: string | null, list: number) => {
    setLoaded((before) => ({ ...before, isLoading: true, problem: null }));
    const answer = await within(range, () =>
      api.get<RecordPage>('/v1/usage/records', { ...query, ...(cursor !== null && { cursor }) }),
    )();
    if (list !== current.current) return;
    setLoaded((before) =>
      answer.kind === 'problem'
        ? { ...before, isLoading: false, problem: answer.problem }
        : {
            records: [...before.records, ...answer.value.data],
            cursor: answer.value.next_cursor,
            problem: null,
            isLoading: false,
          },
    );
  };
  useEffect(() => {
    current.current++;
    setLoaded(NOTHING);
    void read(null, current.current);
  }, [api, JSON.stringify([query, range.problem]), reloads]);
  const { records, cursor, problem, isLoading } = loaded;
  return {
    records,
    problem,
    isLoading,
    hasMore: cursor !== null,
    more: () => void read(cursor, current.current),
    reload: () => setReloads((before) => before + 1),
  };
}
