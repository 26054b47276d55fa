/** What is out of the ordinary, in words. Each sentence leads to its requests. */
import type { RecordPage, Report } from '../../api/types.ts';
import { money, share, times } from '../../format/numbers.ts';
import { hourOfDay } from '../../format/times.ts';
import { Name } from '../../parts/name.tsx';
import { useLoad } from '../../state/load.ts';
import { linkTo, type Params } from '../../state/route.ts';
import { useSession } from '../../state/session.ts';
import { FAILED } from '../overview/metrics.ts';
import { type Anomaly, failureAnomalies, spendAnomalies } from './anomalies.ts';

const HOUR_MS = 3_600_000;
/** What is usual is the median of this time. */
const USUAL_MS = 7 * 24 * HOUR_MS;
/** The most that are shown of each kind. */
const MAX_SHOWN = 3;
/** The requests of the last hour among which failures are counted. */
const MAX_RECORDS = '1000';

interface AnomaliesProps {
  readonly filters: Params;
  readonly currency: string;
  readonly nameOf: (key: string) => string;
  /** Incremented to load again. */
  readonly refreshes: number;
}

export function Anomalies({ filters, currency, nameOf, refreshes }: AnomaliesProps) {
  const { api, isAdmin } = useSession();
  // A key and a token that reads know no other keys.
  const by = isAdmin && filters.key === undefined ? 'key' : 'model';
  const inputs = [api, by, JSON.stringify(filters)];
  const now = Date.now();
  const hours = useLoad<{ readonly by: 'key' | 'model'; readonly rows: Report['data'] }>(
    async (signal) => {
      const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
      const span = { from: minuteOf(hour - USUAL_MS), to: minuteOf(hour + HOUR_MS) };
      const readBy = async (group: typeof by) => {
        const query = { ...filters, ...span, group_by: `hour,${group}` };
        const answer = await api.get<Report>('/v1/usage', query, signal);
        return answer.kind === 'answer'
          ? { ...answer, value: { by: group, rows: answer.value.data } }
          : answer;
      };
      const answer = await readBy(by);
      // A report has 10,000 rows at most: many keys have more hours.
      return by === 'key' && answer.kind === 'problem' && answer.problem.kind === 'refused'
        ? readBy('model')
        : answer;
    },
    inputs,
    refreshes,
  );
  const recent = useLoad<RecordPage>(
    (signal) =>
      api.get('/v1/usage/records', { ...filters, from: minuteOf(now - HOUR_MS), limit: MAX_RECORDS }, signal),
    inputs,
    refreshes,
  );
  const spentBy = hours.value?.by ?? by;
  const found: readonly Anomaly[] = [
    ...failureAnomalies(recent.value?.data ?? []).slice(0, MAX_SHOWN),
    ...spendAnomalies(hours.value?.rows ?? [], (row) => row[spentBy] ?? '', currency, now).slice(
      0,
      MAX_SHOWN,
    ),
  ];
  if (found.length === 0) return null;
  return (
    <ul class="anomalies" aria-label="Out of the ordinary">
      {found.map((anomaly) => (
        <li key={`${anomaly.kind} ${anomaly.of}`}>
          {anomaly.kind === 'failures' ? (
            <>
              <a
                href={linkTo('requests', { ...filters, model: anomaly.of, range: '24h', status: FAILED })}
                title="Its failed requests"
              >
                {share(anomaly.failed / anomaly.requests)} of <Name text={anomaly.of} /> failed
              </a>{' '}
              since {hourOfDay(anomaly.since)}
              <span class="hint">
                {' '}
                {anomaly.failed} of {anomaly.requests} requests
              </span>
            </>
          ) : (
            <>
              <a
                href={linkTo('overview', { ...filters, [spentBy]: anomaly.of, range: '24h' })}
                title="Its spend of the last day"
              >
                <Name text={spentBy === 'key' ? nameOf(anomaly.of) : anomaly.of} /> spent{' '}
                {times(anomaly.amount / anomaly.usual)} its usual hour
              </a>
              : {money(anomaly.amount, currency)} in the hour from {hourOfDay(anomaly.since)}
              <span class="hint"> usually {money(anomaly.usual, currency)}</span>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

/** A time as a parameter of the API, in whole minutes. */
export function minuteOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16)}Z`;
}
