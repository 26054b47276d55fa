/** Describes a failed call: what happened, what it means and what to do. */
import type { Problem } from '../api/problem.ts';
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
    return message.startsWith('At most')
      ? { title: 'This range is too large', words: `${message}. Choose a shorter one.` }
      : { title: 'This range cannot be read', words: `${message}.` };
  if (status === 400 && param === 'tag')
    return { title: 'This view needs LEDGER=object', words: `${message}.` };
  if (status === 400 && param === 'group_by')
    return { title: 'There are too many groups', words: `${message}.` };
  return { title: `The request failed (${code || status})`, words: message || 'No reason was given.' };
}

/** Why a call of a form failed: the message of its field or of what is in the way, or what happened. */
export function failureWords(problem: Problem): string {
  const isForReader = problem.kind === 'refused' && (problem.status === 400 || problem.status === 409);
  return isForReader ? problem.message : describe(problem).title;
}

type Outcome = Pick<Loaded<unknown>, 'value' | 'loadedAt' | 'problem' | 'reload'>;

/** Why a load failed: a box in place of its data, or a strip above the data of the call before, which stays on screen. */
export function Trouble({ of: { value, loadedAt, problem, reload } }: { of: Outcome }) {
  if (problem === null) return null;
  if (value === null || loadedAt === null) return <ProblemBox problem={problem} onRetry={reload} />;
  return (
    <p class="problem stale" role="status">
      <strong>{describe(problem).title}.</strong> You see the data of {timeOfDay(loadedAt)}.{' '}
      <WayOut of={problem} onRetry={reload} />
    </p>
  );
}

interface ProblemBoxProps {
  readonly problem: Problem;
  readonly onRetry?: () => void;
}

export function ProblemBox({ problem, onRetry }: ProblemBoxProps) {
  const { title, words } = describe(problem);
  return (
    <div class="problem" role="alert">
      <strong>{title}</strong>
      <p>
        <bdi>{words}</bdi>
      </p>
      <WayOut of={problem} onRetry={onRetry} />
    </div>
  );
}

/** The button for what helps: to sign out where the token has ended, or to try again, except in a range that cannot have data. */
function WayOut({ of: problem, onRetry }: { of: Problem; onRetry: (() => void) | undefined }) {
  const { signOut } = useSession();
  const isSignedOut = problem.kind === 'refused' && problem.status === 401;
  const isOfRange = problem.kind === 'refused' && problem.param === 'range';
  const [label, act] = isSignedOut ? ['Sign out', signOut] : ['Try again', onRetry];
  if (isOfRange || act === undefined) return null;
  return (
    <button type="button" onClick={act}>
      {label}
    </button>
  );
}
