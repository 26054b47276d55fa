/** Describes a failed call: what happened, what it means and what to do. */
import type { Problem } from '../api/fetch-api.ts';
import { timeOfDay } from '../format/times.ts';
import type { Loaded } from '../state/load.ts';
import { useSession } from '../state/session.ts';

interface Description {
  readonly title: string;
  readonly words: string;
}

export function describe(problem: Problem): Description {
  if (problem.kind === 'offline')
    return {
      title: "The deployment can't be reached",
      words: 'You may be offline.',
    };
  const { status, code, message, param } = problem;
  if (status === 401)
    return {
      title: 'This token is not accepted any more',
      words: 'It was revoked, changed, or has expired.',
    };
  if (status === 403) return { title: 'This token has no right to see this', words: message };
  if (param === 'range') return { title: 'Nothing can be in this range', words: message };
  if (status === 400 && (param === 'from' || param === 'to'))
    return { title: 'This range is too large', words: `${message}. Choose a shorter one.` };
  if (status === 400 && param === 'tag')
    return { title: 'This view needs LEDGER=object', words: `${message}.` };
  if (status === 400 && param === 'group_by')
    return { title: 'There are too many groups', words: `${message}.` };
  return { title: `The request failed (${code || status})`, words: message || 'No reason was given.' };
}

type Outcome = Pick<Loaded<unknown>, 'value' | 'loadedAt' | 'problem' | 'reload'>;

/** Why a load failed: a box in place of its data, or a strip above the data of the call before, which stays on screen. */
export function Trouble({ of: { value, loadedAt, problem, reload } }: { of: Outcome }) {
  const { signOut } = useSession();
  if (problem === null) return null;
  if (value === null || loadedAt === null) return <ProblemBox problem={problem} onRetry={reload} />;
  const isSignedOut = problem.kind === 'refused' && problem.status === 401;
  return (
    <p class="problem stale" role="status">
      <strong>{describe(problem).title}.</strong> You see the data of {timeOfDay(loadedAt)}.{' '}
      <button type="button" onClick={isSignedOut ? signOut : reload}>
        {isSignedOut ? 'Sign out' : 'Try again'}
      </button>
    </p>
  );
}

export function ProblemBox({ problem, onRetry }: { problem: Problem; onRetry?: () => void }) {
  const { signOut } = useSession();
  const { title, words } = describe(problem);
  const isSignedOut = problem.kind === 'refused' && problem.status === 401;
  const isOfRange = problem.kind === 'refused' && problem.param === 'range';
  return (
    <div class="problem" role="alert">
      <strong>{title}</strong>
      <p>
        <bdi>{words}</bdi>
      </p>
      {isSignedOut ? (
        <button type="button" onClick={signOut}>
          Sign out
        </button>
      ) : (
        !isOfRange &&
        onRetry && (
          <button type="button" onClick={onRetry}>
            Try again
          </button>
        )
      )}
    </div>
  );
}
