/** The overview: spend, requests, tokens and failures over time and by group, compared with the previous range. */
import { useState } from 'preact/hooks';
import { timeOfDay } from '../../format/times.ts';
import { Trouble } from '../../parts/problem.tsx';
import { linkTo, type Params } from '../../state/route.ts';
import { useKeyNames, useSession } from '../../state/session.ts';
import { UserLimits } from '../keys/user-limits.tsx';
import { Anomalies } from '../now/anomalies-list.tsx';
import { Bar, readChoice } from './bar.tsx';
import { Figures } from './figures.tsx';
import { Lost } from './lost.tsx';
import { currenciesOf, METRICS, rank } from './metrics.ts';
import { OverTime } from './over-time.tsx';
import { Refused } from './refused.tsx';
import { useReports } from './reports.ts';
import { GroupTable } from './table.tsx';
import { Why } from './why.tsx';

export function Overview({ params }: { params: Params }) {
  const { isAdmin } = useSession();
  const { keys, nameOf } = useKeyNames();
  const choice = readChoice(params, isAdmin);
  const { range, filters, isTagMissing } = choice;
  const { now, steps, counted, countedSteps, previous, why, lostByCause, lostByApp, refused, ...others } =
    useReports(choice);
  const { refusedSteps, reload } = others;
  const [refreshes, setRefreshes] = useState(0);
  const refresh = () => {
    reload();
    setRefreshes(refreshes + 1);
  };
  const metric = METRICS.find(({ name }) => name === params.metric) ?? METRICS[0];
  const currencies = currenciesOf(now.value?.total);
  const currency = currencies.find((known) => known === params.currency) ?? currencies[0] ?? 'USD';
  const shown = now.value;
  const isEmpty = shown !== null && shown.total.requests === 0 && !now.isLoading;
  const groups = shown === null ? [] : rank(shown.data, shown.by, metric, currency);
  return (
    <>
      <Bar
        {...{ params, choice, currencies, currency, nameOf }}
        rows={shown?.data ?? []}
        onRefresh={refresh}
      />
      <Trouble of={{ ...now, reload: refresh }} />
      {range.toMs > Date.now() && <Anomalies {...{ filters, currency, nameOf, refreshes }} />}
      {(now.problem === null || shown !== null) && (
        <div aria-busy={now.isLoading} class={`overview${now.isLoading ? ' loading' : ''}`}>
          <Figures
            now={shown?.total ?? null}
            previous={previous?.total ?? null}
            refused={refused?.total.refused_requests ?? null}
            hasOutage={why?.data.some((row) => row.failed_requests > 0 && row.fault !== 'caller') ?? false}
            steps={steps.value}
            refusedSteps={refusedSteps.value}
            {...{ counted, countedSteps, range, currency, metric, params }}
          />
          {isEmpty && <Empty isFiltered={Object.keys(filters).length > 0} />}
          {shown !== null && !isEmpty && !isTagMissing && (
            <>
              <OverTime
                {...{ range, params, filters, by: shown.by, metric, currency, groups, nameOf, refreshes }}
                totals={steps}
                refusals={refusedSteps}
                distribution={shown.distribution}
              />
              <GroupTable
                {...{ params, by: shown.by, metric, currency, groups, nameOf }}
                total={shown.total}
              />
            </>
          )}
          {filters.user && isAdmin && (
            <UserLimits
              user={filters.user}
              keys={keys.filter(({ id }) => !filters.key || id === filters.key)}
            />
          )}
          <div class="tables">
            <Lost byCause={lostByCause?.data ?? []} byApp={lostByApp?.data ?? []} currency={currency} />
            <Why report={why} params={params} />
            {refused !== null && <Refused refusals={refused} nameOf={isAdmin ? nameOf : null} />}
          </div>
          {now.loadedAt !== null && (
            <p class="hint foot">As of {timeOfDay(now.loadedAt)}. Records show up within a minute.</p>
          )}
        </div>
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
