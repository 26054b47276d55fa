/** The overview: spend, requests, tokens and failures over time and by group, compared with the previous range. */
import { useEffect, useState } from 'preact/hooks';
import type { GroupName, RecordPage, Refusals, Report } from '../../api/types.ts';
import { timeOfDay } from '../../format/times.ts';
import { AddFilter, Chips, Folded, RangePicker, Refresh } from '../../parts/controls.tsx';
import { Trouble } from '../../parts/problem.tsx';
import { FILTERS, GROUP_LABELS, isTagGroup, TAG } from '../../state/groups.ts';
import { useLoad, within } from '../../state/load.ts';
import { previousRange, type Range, readRange, spanOf } from '../../state/range.ts';
import { goTo, linkTo, type Params, pick } from '../../state/route.ts';
import { useKeyNames, useSession } from '../../state/session.ts';
import { UserLimits } from '../keys/user-limits.tsx';
import { Figures } from './figures.tsx';
import { Lost } from './lost.tsx';
import { currenciesOf, METRICS, rank } from './metrics.ts';
import { OverTime } from './over-time.tsx';
import { Refused } from './refused.tsx';
import { GroupTable } from './table.tsx';
import { WhatIf } from './what-if.tsx';
import { Why } from './why.tsx';

const GROUPS = ['model', 'provider', 'key', 'status', 'user', 'session', 'app'] as const;
/** What a removed filter keeps. */
const KEPT = ['range', 'from', 'to', 'hour', 'by', 'metric', 'refresh'];

/** The report on screen. It may still have the previous grouping while the next is loading. */
interface Shown extends Report {
  readonly by: GroupName;
}

/** Refusals are not counted by the active filters. */
const NO_REFUSALS: Refusals = { data: [], total: { refused_requests: null } };

export function Overview({ params }: { params: Params }) {
  const { api, isAdmin } = useSession();
  const { keys, nameOf } = useKeyNames();
  const range = readRange(params);
  const groups = GROUPS.filter((name) => name !== 'key' || isAdmin);
  const chosen = params.by ?? '';
  const by: GroupName = isTagGroup(chosen) ? chosen : (groups.find((name) => name === chosen) ?? 'model');
  const filters = pick(
    params,
    FILTERS.filter((name) => name !== 'key' || isAdmin),
  );
  const query = JSON.stringify([spanOf(range), filters, range.problem]);
  const now = useLoad<Shown>(
    within(range, async (signal) => {
      const answer = await api.get<Report>(
        '/v1/usage',
        { ...spanOf(range), ...filters, group_by: by },
        signal,
      );
      return answer.kind === 'answer' ? { ...answer, value: { ...answer.value, by } } : answer;
    }),
    [api, query, by],
  );
  const previous = useLoad<Report>(
    within(range, (signal) =>
      api.get('/v1/usage', { ...spanOf(previousRange(range)), ...filters, group_by: 'status' }, signal),
    ),
    [api, query],
  );
  const why = useLoad<Report>(
    within(range, (signal) =>
      api.get('/v1/usage', { ...spanOf(range), ...filters, group_by: 'fault,error' }, signal),
    ),
    [api, query],
  );
  const hasLosses = (now.value?.total.lost_tokens ?? 0) > 0;
  const useLost = (group_by: 'cache_cause' | 'app') =>
    useLoad<Pick<Report, 'data'>>(
      within(range, async (signal) =>
        hasLosses
          ? api.get('/v1/usage', { ...spanOf(range), ...filters, group_by }, signal)
          : { kind: 'answer', value: { data: [] } },
      ),
      [api, query, hasLosses],
    );
  const byCause = useLost('cache_cause');
  const byApp = useLost('app');
  // A refused request has no provider, model or status.
  const { key = '', ...others } = filters;
  const refused = useLoad<Refusals>(
    within(range, async (signal) =>
      Object.keys(others).length > 0
        ? { kind: 'answer', value: NO_REFUSALS }
        : api.get(
            '/v1/usage/refusals',
            { ...spanOf(range), ...(key && { key }), group_by: isAdmin ? 'code,key' : 'code' },
            signal,
          ),
    ),
    [api, query],
  );
  const metric = METRICS.find(({ name }) => name === params.metric) ?? METRICS[0];
  const [refreshes, setRefreshes] = useState(0);
  const refresh = () => {
    now.reload();
    previous.reload();
    refused.reload();
    why.reload();
    byCause.reload();
    byApp.reload();
    setRefreshes(refreshes + 1);
  };
  const currencies = currenciesOf(now.value?.total);
  const currency = currencies.find((known) => known === params.currency) ?? currencies[0] ?? 'USD';
  const shown = now.value;

  return (
    <>
      <div class="bar">
        <RangePicker view="overview" params={params} range={range} />
        <label class="inline">
          By{' '}
          <select
            value={chosen.startsWith(TAG) ? TAG : by}
            onChange={(event) => goTo('overview', params, { by: event.currentTarget.value })}
          >
            {[...groups, TAG].map((name) => (
              <option key={name} value={name}>
                {GROUP_LABELS[name.replace(':', '')]}
              </option>
            ))}
          </select>
        </label>
        {chosen.startsWith(TAG) && <TagName params={params} range={range} />}
        <Folded>
          {currencies.length > 1 && (
            <label class="inline">
              In{' '}
              <select
                value={currency}
                onChange={(event) => goTo('overview', params, { currency: event.currentTarget.value })}
              >
                {currencies.map((known) => (
                  <option key={known}>{known}</option>
                ))}
              </select>
            </label>
          )}
          <AddFilter
            view="overview"
            params={params}
            valuesOf={(name) => (by === name ? (shown?.data.map((row) => row[by] ?? '') ?? []) : [])}
          />
        </Folded>
        <Refresh view="overview" params={params} onRefresh={refresh} />
        <Chips
          view="overview"
          params={{ ...filters, ...pick(params, KEPT) }}
          names={FILTERS}
          nameOf={nameOf}
        />
      </div>
      <Trouble of={{ ...now, reload: refresh }} />
      {(now.problem === null || shown !== null) && (
        <div aria-busy={now.isLoading} class={`overview${now.isLoading ? ' loading' : ''}`}>
          <Figures
            now={shown?.total ?? null}
            previous={previous.value?.total ?? null}
            refused={refused.value?.total.refused_requests ?? null}
            hasOutage={
              why.value?.data.some((row) => row.failed_requests > 0 && row.fault !== 'caller') ?? false
            }
            {...{ currency, metric, params }}
          />
          {shown !== null && shown.total.requests === 0 && !now.isLoading ? (
            <Empty isFiltered={Object.keys(filters).length > 0} />
          ) : (
            shown !== null &&
            chosen !== TAG && (
              <>
                <OverTime
                  {...{ range, params, filters, by: shown.by, metric, currency, nameOf, refreshes }}
                  groups={rank(shown.data, shown.by, metric, currency)}
                />
                <GroupTable
                  {...{ params, metric, currency, nameOf }}
                  by={shown.by}
                  groups={rank(shown.data, shown.by, metric, currency)}
                  total={shown.total}
                />
              </>
            )
          )}
          {filters.user && isAdmin && (
            <UserLimits user={filters.user} keys={keys.filter(({ id }) => !key || id === key)} />
          )}
          <Lost byCause={byCause.value?.data ?? []} byApp={byApp.value?.data ?? []} currency={currency} />
          {shown !== null && shown.total.requests > 0 && <WhatIf total={shown.total} currency={currency} />}
          <Why report={why.value} />
          <Refused refusals={refused.value ?? NO_REFUSALS} nameOf={isAdmin ? nameOf : null} />
          {now.loadedAt !== null && (
            <p class="hint foot">As of {timeOfDay(now.loadedAt)}. Records show up within a minute.</p>
          )}
        </div>
      )}
    </>
  );
}

/** The tag that the requests are grouped by. Offers the tags of the latest requests, and takes the first where none is chosen. */
function TagName({ params, range }: { params: Params; range: Range }) {
  const { api } = useSession();
  const { value } = useLoad<RecordPage>(
    within(range, (signal) => api.get('/v1/usage/records', { ...spanOf(range), limit: '100' }, signal)),
    [api, JSON.stringify(spanOf(range))],
  );
  const names = [...new Set(value?.data.flatMap(({ tags = {} }) => Object.keys(tags)))].sort();
  const name = (params.by ?? '').slice(TAG.length);
  const [first] = names;
  const [text, setText] = useState(name);
  useEffect(() => setText(name), [name]);
  useEffect(() => {
    if (name === '' && first !== undefined) goTo('overview', params, { by: TAG + first });
  }, [name, first]);
  return (
    <>
      <input
        aria-label="Name of the tag"
        list="tags"
        size={12}
        placeholder="team"
        pattern="[a-z0-9_.\-]{1,32}"
        // In the state, because a render during typing would reset the field to the URL's text.
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onChange={({ currentTarget }) =>
          currentTarget.reportValidity() && goTo('overview', params, { by: TAG + currentTarget.value })
        }
      />
      <datalist id="tags">
        {names.map((known) => (
          <option key={known} value={known} />
        ))}
      </datalist>
      {name === '' && value !== null && names.length === 0 && (
        <span class="hint">The latest requests have no tags. Enter the name of a tag.</span>
      )}
    </>
  );
}

function Empty({ isFiltered }: { isFiltered: boolean }) {
  return (
    <div class="empty">
      <strong>No requests in this range</strong>
      <p>{isFiltered ? 'No request fits the filters.' : 'Requests show up here within a minute.'}</p>
      <p>
        <a href={linkTo('live', {})}>Send a request in Live</a>
      </p>
    </div>
  );
}
