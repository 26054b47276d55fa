/** Loads what the overview shows. */
import type { Answer } from '../../api/problem.ts';
import type { GroupName, NamedGroups, Refusals, Report } from '../../api/types.ts';
import { type Loaded, useLoad, within } from '../../state/load.ts';
import { previousRange, reportStep, spanOf } from '../../state/range.ts';
import { useSession } from '../../state/session.ts';
import type { Choice } from './bar.tsx';
import type { Counted } from './metrics.ts';

/** The report on screen. It may still have the previous grouping while the next is loading. */
interface Grouped extends Report {
  readonly by: GroupName;
}

type Rows = Pick<Report, 'data'>;

/** All but the first are null where they are not loaded. */
interface Reports {
  readonly now: Loaded<Grouped>;
  /** The sums of each step of the range. */
  readonly steps: Loaded<Report>;
  /** How many users and sessions there are, and what they cost. */
  readonly counted: Readonly<Record<Counted, NamedGroups | null>>;
  /** How many there are in each hour or UTC day: users of a day are not the sum of those of its hours. */
  readonly countedSteps: Readonly<Record<Counted, NamedGroups | null>>;
  /** Of the range before. */
  readonly previous: Report | null;
  /** Failures by whose fault they are and by code. */
  readonly why: Report | null;
  /** What breaks of the prompt cache cost. */
  readonly lostByCause: Rows | null;
  readonly lostByApp: Rows | null;
  readonly refused: Refusals | null;
  readonly refusedSteps: Loaded<Refusals>;
  readonly reload: () => void;
}

/** Refusals are not counted by the active filters. */
const NO_REFUSALS: Refusals = { data: [], total: { refused_requests: null } };
const NO_ROWS: Answer<Rows> = { kind: 'answer', value: { data: [] } };

export function useReports({ range, by, filters }: Choice): Reports {
  const { api, isAdmin } = useSession();
  const query = JSON.stringify([spanOf(range), filters, range.problem]);
  const readReport = (group_by: string, of = range, limit = {}) =>
    within(of, (signal: AbortSignal) =>
      api.get<Report>('/v1/usage', { ...spanOf(of), ...filters, ...limit, group_by }, signal),
    );
  const now = useLoad<Grouped>(
    async (signal) => {
      const answer = await readReport(by)(signal);
      return answer.kind === 'answer' ? { ...answer, value: { ...answer.value, by } } : answer;
    },
    [api, query, by],
  );
  const hasLosses = (now.value?.total.lost_tokens ?? 0) > 0;
  const ifLost = (group_by: string) => (hasLosses ? readReport(group_by) : async () => NO_ROWS);
  // A refused request has no provider, model or status.
  const { key = '', ...others } = filters;
  const isCounted = Object.keys(others).length === 0;
  const readRefused = (group_by: string) =>
    within(range, async (signal: AbortSignal): Promise<Answer<Refusals>> => {
      if (!isCounted) return { kind: 'answer', value: NO_REFUSALS };
      return api.get('/v1/usage/refusals', { ...spanOf(range), ...(key && { key }), group_by }, signal);
    });
  const step = reportStep(range);
  const steps = useLoad<Report>(readReport(step), [api, query, step]);
  // `named` counts the groups before the limit.
  const useNamed = (groups: string) =>
    useLoad<Report>(readReport(groups, range, { limit: '1' }), [api, query, groups]);
  const users = useNamed('user');
  const sessions = useNamed('session');
  const userSteps = useNamed(`${range.step},user`);
  const sessionSteps = useNamed(`${range.step},session`);
  const previous = useLoad<Report>(readReport('status', previousRange(range)), [api, query]);
  const why = useLoad<Report>(readReport('fault,error'), [api, query]);
  const lostByCause = useLoad<Rows>(ifLost('cache_cause'), [api, query, hasLosses]);
  const lostByApp = useLoad<Rows>(ifLost('app'), [api, query, hasLosses]);
  const refused = useLoad<Refusals>(readRefused(isAdmin ? 'code,key' : 'code'), [api, query]);
  const refusedSteps = useLoad<Refusals>(readRefused(step), [api, query, step]);
  return {
    now,
    steps,
    counted: { user: users.value?.named ?? null, session: sessions.value?.named ?? null },
    countedSteps: { user: userSteps.value?.named ?? null, session: sessionSteps.value?.named ?? null },
    previous: previous.value,
    why: why.value,
    lostByCause: lostByCause.value,
    lostByApp: lostByApp.value,
    refused: refused.value,
    refusedSteps,
    reload: () => {
      const ofTiles = [steps, users, sessions, userSteps, sessionSteps, refusedSteps];
      for (const one of [now, ...ofTiles, previous, why, lostByCause, lostByApp, refused]) one.reload();
    },
  };
}
