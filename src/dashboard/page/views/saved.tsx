/** The dialog of views: those that are saved in this browser, the address of this one, and a link that shows it without the admin token. */
import { useState } from 'preact/hooks';
import type { Problem } from '../api/problem.ts';
import type { NewUsageToken } from '../api/types.ts';
import { date } from '../format/times.ts';
import { CopyButton } from '../parts/controls.tsx';
import { Dialog, FormEnd } from '../parts/dialog.tsx';
import { failureWords } from '../parts/problem.tsx';
import { linkTo, type Params, pick, type View } from '../state/route.ts';
import { readSavedViews, removeView, saveView } from '../state/saved-views.ts';
import { sharedLink, useKeyNames, useSession } from '../state/session.ts';

interface SavedViewsProps {
  /** The view behind the dialog. */
  readonly view: View;
  readonly label: string;
  readonly params: Params;
  readonly onClose: () => void;
}

export function SavedViews({ view, label, params, onClose }: SavedViewsProps) {
  const { isAdmin } = useSession();
  const hash = linkTo(view, params, { id: undefined });
  return (
    <Dialog title="Views" onClose={onClose}>
      <SavedList hash={hash} label={label} onClose={onClose} />
      <p class="send">
        <CopyButton text={location.href.split('#')[0] + hash} label="Copy the address of this view" />
      </p>
      {isAdmin && SHARED_VIEWS.includes(view) && <Share hash={hash} label={label} params={params} />}
    </Dialog>
  );
}

interface SavedListProps {
  readonly hash: string;
  readonly label: string;
  readonly onClose: () => void;
}

function SavedList({ hash, label, onClose }: SavedListProps) {
  const [views, setViews] = useState(readSavedViews);
  const [name, setName] = useState(label);
  const [isKept, setKept] = useState(true);
  const show = (stored: typeof views | null) => {
    setKept(stored !== null);
    if (stored !== null) setViews(stored);
  };
  return (
    <>
      {views.length > 0 && (
        <ul class="saved" aria-label="Saved views">
          {views.map((view) => (
            <li key={view.name}>
              <a href={view.hash} onClick={onClose}>
                <bdi>{view.name}</bdi>
              </a>
              <button
                type="button"
                aria-label={`Remove ${view.name}`}
                onClick={() => show(removeView(view.name))}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          show(saveView({ name: name.trim(), hash }));
        }}
      >
        <label>
          Save this view as <span class="hint">in this browser</span>
          <input
            value={name}
            required
            pattern=".*\S.*"
            maxLength={100}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </label>
        <p class="send">
          <button type="submit">Save</button>
        </p>
        {!isKept && (
          <p class="problem" role="alert">
            This browser keeps nothing for this page.
          </p>
        )}
      </form>
    </>
  );
}

/** Views of routes that a token which reads usage may call. */
const SHARED_VIEWS: readonly View[] = ['overview', 'now', 'requests'];
/** What such a token can be bound to. */
const BOUND = ['key', 'provider', 'user', 'session', 'app', 'tag'];
const DAY_MS = 86_400_000;

interface ShareProps {
  readonly hash: string;
  readonly label: string;
  readonly params: Params;
}

/** Makes a token that reads what this view is filtered by, and a link that signs in with it. */
function Share({ hash, label, params }: ShareProps) {
  const { api } = useSession();
  const { nameOf } = useKeyNames();
  const [name, setName] = useState(`Link to ${label}`);
  const [days, setDays] = useState('7');
  const [problem, setProblem] = useState<Problem | null>(null);
  const [made, setMade] = useState<NewUsageToken | null>(null);
  const filter = Object.entries(pick(params, BOUND)).filter(([, value]) => value !== '');
  const bound = filter.map(([field, value]) => `${field} ${field === 'key' ? nameOf(value) : value}`);
  const share = async (event: SubmitEvent) => {
    event.preventDefault();
    const answer = await api.send<NewUsageToken>('POST', '/admin/keys', {
      ...{ name: name.trim(), scope: 'usage' },
      filter: filter.length === 0 ? null : Object.fromEntries(filter),
      expires_at: new Date(Date.now() + Number(days) * DAY_MS).toISOString(),
    });
    if (answer.kind === 'answer') setMade(answer.value);
    else setProblem(answer.problem);
  };
  if (made !== null) {
    const link = sharedLink(hash, made.key);
    return (
      <>
        <p>
          Whoever has this link reads {bound.length === 0 ? 'all usage' : <bdi>{bound.join(', ')}</bdi>}
          {made.expires_at !== null && ` until ${date(made.expires_at)}`}. It is{' '}
          <strong>not shown again</strong>; Keys revokes it.
        </p>
        <p class="secret">
          <output class="code">{link}</output>
          <CopyButton text={link} what="the link" />
        </p>
      </>
    );
  }
  return (
    <details>
      <summary>A link that shows it without the admin token</summary>
      <form onSubmit={share}>
        <p class="hint">
          Its token reads{' '}
          {bound.length === 0 ? (
            'all usage and all records'
          ) : (
            <>
              only usage and records of <bdi>{bound.join(', ')}</bdi>
            </>
          )}
          , at all times. Other filters of this view can be removed by its reader.
        </p>
        <label>
          Name in Keys
          <input
            value={name}
            required
            maxLength={100}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </label>
        <label>
          Days until it expires
          <input
            type="number"
            min="1"
            max="365"
            required
            value={days}
            onInput={({ currentTarget }) => setDays(currentTarget.value)}
          />
        </label>
        <FormEnd failure={problem && failureWords(problem)} action="Make the link" />
      </form>
    </details>
  );
}
