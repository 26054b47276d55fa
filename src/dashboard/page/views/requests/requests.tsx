/** The list of requests, newest first, filtered by key, model or status. A request opens in a dialog. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Problem } from '../../api/fetch-api.ts';
import type { RecordPage, Refusals, UsageRecord } from '../../api/types.ts';
import { cacheAdvice, cacheTitle, isBreak } from '../../format/caches.ts';
import { STATUSES, statusWords } from '../../format/endings.ts';
import { count, milliseconds, money, NONE, share } from '../../format/numbers.ts';
import { moment } from '../../format/times.ts';
import { isoTime, zoneName } from '../../format/zone.ts';
import { AddFilter, Chips, Folded, RangePicker, Refresh } from '../../parts/controls.tsx';
import { Name } from '../../parts/name.tsx';
import { Trouble } from '../../parts/problem.tsx';
import { type Column, numberColumn, Table } from '../../parts/table.tsx';
import { TEXT_FILTERS } from '../../state/groups.ts';
import { useLoad, within } from '../../state/load.ts';
import { readRange, spanOf } from '../../state/range.ts';
import { goTo, linkTo, type Params, pick } from '../../state/route.ts';
import { type KeyNames, useKeyNames, useSession } from '../../state/session.ts';
import { FAILED } from '../overview/metrics.ts';
import { Refused } from '../overview/refused.tsx';
import { RecordDialog } from './record-dialog.tsx';
import { cachedOf, SessionCharts, servedBy, targetColours } from './session.tsx';

const PAGE = '50';
/** The requests of a session are read at once, as far as one page goes. */
const SESSION_PAGE = '1000';
/** Refused requests have counts, but no records. */
const REFUSED = 'refused';
const TRUNCATED = 'truncated';
const ID = /^[0-9a-f-]{36}$/;

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
  const { records: loaded, loadedAt, problem, isLoading, hasMore, more, reload, retry } = useRecords(params);
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
          lookOf={() => 'opens'}
          onOpen={({ request_id }) => goTo('requests', params, { id: request_id })}
        />
      )}
      {records.length === 0 && !isLoading && problem === null && !hasMore && (
        <div class="empty">
          <strong>
            {hasFilters(params) ? 'No requests fit these filters in this range' : 'No requests in this range'}
          </strong>
          <p>Records show up within a minute after a request has ended.</p>
        </div>
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

interface FiltersProps {
  readonly params: Params;
  readonly names: KeyNames;
  /** Those on screen: their routes and clients can be chosen. */
  readonly records: readonly UsageRecord[];
  readonly onRefresh: () => void;
}

function Filters({ params, names, records, onRefresh }: FiltersProps) {
  const { isAdmin } = useSession();
  const [search, setSearch] = useState('');
  useEffect(() => setSearch(params.search ?? ''), [params.search]);
  const set = (name: string) => (event: Event & { currentTarget: HTMLSelectElement }) =>
    goTo('requests', params, { [name]: event.currentTarget.value });
  const choice = (label: string, name: 'route' | 'client') => (
    <label class="inline">
      {label}{' '}
      <select value={params[name] ?? ''} onChange={set(name)}>
        <option value="">any</option>
        {[...new Set([...records.map((record) => record[name]), params[name] || 'chat'])]
          .sort()
          .map((value) => (
            <option key={value}>{value}</option>
          ))}
      </select>
    </label>
  );
  return (
    <div class="bar">
      <RangePicker view="requests" params={params} range={readRange(params)} />
      <Folded>
        <label class="inline">
          Status{' '}
          <select
            value={params.truncated ? TRUNCATED : (params.status ?? '')}
            onChange={({ currentTarget: { value } }) =>
              goTo(
                'requests',
                params,
                value === TRUNCATED
                  ? { status: undefined, truncated: 'true' }
                  : { status: value, truncated: undefined },
              )
            }
          >
            <option value="">any</option>
            {[...STATUSES, FAILED, TRUNCATED, REFUSED].map((status) => (
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
              {params.key && !names.keys.some((key) => key.id === params.key) && (
                <option>{params.key}</option>
              )}
              {names.keys.map((key) => (
                <option key={key.id} value={key.id}>
                  {key.name || key.id}
                </option>
              ))}
            </select>
          </label>
        )}
        <label class="inline">
          Search{' '}
          <input
            type="search"
            size={24}
            placeholder="part of a name or id"
            // In the state, because a render during typing would reset the field to the URL's text.
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
            onChange={(event) => {
              const text = event.currentTarget.value.trim();
              goTo('requests', params, ID.test(text) ? { id: text } : { search: text.replace(/\*$/, '') });
            }}
          />
        </label>
        {choice('Route', 'route')}
        {choice('Client', 'client')}
        <AddFilter
          view="requests"
          params={params}
          valuesOf={(name) => records.flatMap((record) => valuesOf(record, name))}
        />
      </Folded>
      <Refresh view="requests" params={params} onRefresh={onRefresh} />
      <Chips view="requests" params={params} names={TEXT_FILTERS} nameOf={names.nameOf} />
    </div>
  );
}

function hasFilters(params: Params): boolean {
  return Object.keys(pick(params, [...SENT, 'key', 'hour'])).length > 0;
}

/** The values of a filter that select a record. */
function valuesOf({ asked, provider, user, session, app, tags = {} }: UsageRecord, name: string): string[] {
  if (name === 'tag') return Object.entries(tags).map(([tag, value]) => `${tag}:${value}`);
  const { [name]: value }: Readonly<Record<string, string | null>> = {
    model: asked,
    provider,
    user,
    session,
    app,
  };
  return value ? [value] : [];
}

function columnsOf(
  params: Params,
  names: KeyNames,
  isAdmin: boolean,
  records: readonly UsageRecord[],
): readonly Column<UsageRecord>[] {
  const number = numberColumn<UsageRecord>;
  const keyColumn: Column<UsageRecord> = {
    head: 'Key',
    look: 'name',
    value: ({ key_id }) => names.nameOf(key_id),
    cell: ({ key_id }) => <Name title={key_id} text={names.nameOf(key_id)} />,
  };
  const colours = params.session ? targetColours(records) : null;
  const hasUsers = records.some(({ user }) => user);
  const facts: readonly Column<UsageRecord>[] = [
    {
      head: 'User',
      look: hasUsers ? 'name' : 'csv',
      value: ({ user }) => user,
      cell: ({ user }) => (user ? <Name text={user} /> : NONE),
    },
    { head: 'Session', look: 'csv', value: ({ session }) => session },
    { head: 'App', look: 'csv', value: ({ app }) => app },
    { head: 'Tags', look: 'csv', value: (record) => valuesOf(record, 'tag').join(', ') },
    { head: 'Request id', look: 'csv', value: ({ request_id }) => request_id },
  ];
  return [
    {
      head: `Time (${zoneName()})`,
      isMain: true,
      value: ({ time }) => isoTime(time),
      cell: ({ request_id, time }) => (
        <a href={linkTo('requests', params, { id: request_id })}>{moment(time)}</a>
      ),
    },
    {
      head: 'Model',
      look: 'name',
      isMain: true,
      value: ({ asked }) => asked,
      cell: (record) => (
        <>
          {colours !== null && <span class={`swatch ${colours.get(servedBy(record))}`} aria-hidden="true" />}
          <Served of={record} />
        </>
      ),
    },
    { head: 'Served by', look: 'csv', value: servedBy },
    ...(isAdmin ? [keyColumn] : []),
    ...facts.filter(({ look }) => look === 'csv' || colours === null),
    {
      head: 'Status',
      isMain: true,
      value: ({ status }) => status,
      cell: (record) => <Outcome of={record} />,
    },
    number('Tokens in', ({ prompt_tokens }) => prompt_tokens),
    number('Cached', cachedOf, share),
    {
      ...number('Tokens out', ({ completion_tokens }) => completion_tokens),
      cell: ({ completion_tokens, estimated }) => (estimated ? '~' : '') + count(completion_tokens),
    },
    number('First token', ({ first_token_ms }) => first_token_ms, milliseconds),
    number('Duration', ({ total_ms }) => total_ms, milliseconds),
    {
      ...number('Cost', ({ cost }) => cost),
      isMain: true,
      cell: ({ cost, currency, total_tokens }) =>
        cost === null || currency === null || (cost === 0 && total_tokens === 0)
          ? NONE
          : money(cost, currency),
    },
  ];
}

/** The requested model, and who served it, where that differs. */
function Served({ of: record }: { of: UsageRecord }) {
  const { asked } = record;
  const served = servedBy(record);
  return (
    <>
      <Name text={asked} title={`${asked} → ${served}`} />
      {served !== asked && (
        <span class="hint served">
          {' '}
          → <Name text={served} />
        </span>
      )}
    </>
  );
}

/** How a request ended, the number of its attempts, where there was more than one, and a break of the prompt cache. */
function Outcome({ of: { status, error_code, attempts = [], cache } }: { of: UsageRecord }) {
  const called = attempts.filter(({ ms }) => ms !== null).length;
  return (
    <>
      <span class={`status ${status}`}>{statusWords(status)}</span>{' '}
      {called > 1 && <span class="badge">{called} attempts</span>}
      {cache !== undefined && isBreak(cache.cause) && (
        <span class="badge" title={`${cacheTitle(cache)}. ${cacheAdvice(cache)}`}>
          cache: {cache.cause}
        </span>
      )}{' '}
      {error_code !== null && (
        <span class="hint code">
          <bdi>{error_code}</bdi>
        </span>
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
const SENT = [...TEXT_FILTERS, 'route', 'client', 'search', 'truncated', 'status'];

/** The records that were loaded so far. */
function useRecords(params: Params) {
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
  const read = async (cursor: string | null, list: number) => {
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
    void read(null, current.current);
  }, [api, wanted]);
  // The records stay on screen while they are loaded again.
  useEffect(() => {
    if (reloads === 0) return;
    current.current++;
    void read(null, current.current);
  }, [reloads]);
  // Until the effect has run, the records are those of the earlier filters.
  const { records, loadedAt, cursor, failed, isLoading } = loaded.query === wanted ? loaded : NOTHING;
  const more = () => void read(cursor, current.current);
  const reload = () => setReloads((before) => before + 1);
  return {
    records,
    loadedAt,
    problem: failed?.problem ?? null,
    isLoading,
    hasMore: cursor !== null,
    more,
    reload,
    retry: failed?.cursor ? more : reload,
  };
}
