/** The page's frame: the session, the navigation and the current view. */
import { useEffect, useState } from 'preact/hooks';
import { ADMIN_VIEWS, linkTo, type Params, pick, useRoute, VIEWS, type View } from './state/route.ts';
import {
  forgetToken,
  provideSession,
  readStoredToken,
  type Session,
  signIn,
  useSession,
} from './state/session.ts';
import { Health } from './views/health/health.tsx';
import { Keys } from './views/keys/keys.tsx';
import { OwnKey } from './views/keys/own-key.tsx';
import { Live } from './views/live/live.tsx';
import { Overview } from './views/overview/overview.tsx';
import { Requests } from './views/requests/requests.tsx';
import { SignIn } from './views/sign-in.tsx';

export function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [isReturning, setReturning] = useState(() => readStoredToken() !== null);

  useEffect(() => {
    const token = readStoredToken();
    if (token === null) return;
    void signIn(token).then((result) => {
      if (result.kind === 'session') setSession(result.session);
      else if (result.kind === 'refused') forgetToken();
      setReturning(false);
    });
  }, []);

  const signOut = () => {
    forgetToken();
    setSession(null);
  };

  if (session === null)
    return isReturning ? (
      <main class="sign-in" aria-busy="true">
        <h1>Weir</h1>
        <p class="hint">Signing in …</p>
      </main>
    ) : (
      <SignIn onSignedIn={setSession} />
    );
  provideSession({ ...session, signOut });
  return <Frame />;
}

const LABELS: Readonly<Record<View, string>> = {
  overview: 'Overview',
  requests: 'Requests',
  keys: 'Keys',
  live: 'Live',
  health: 'Health',
};

function Frame() {
  const { isAdmin, key, signOut } = useSession();
  const { view: named, params } = useRoute();
  const views = VIEWS.filter((name) => isAdmin || !ADMIN_VIEWS.includes(name));
  const view = views.includes(named) ? named : 'overview';
  const labelOf = (name: View) => (name === 'keys' && !isAdmin ? 'Key' : LABELS[name]);
  const label = labelOf(view);
  useEffect(() => {
    document.title = `${label} – Weir`;
  }, [label]);
  return (
    <>
      <header class="top">
        <span class="brand">Weir</span>
        <nav aria-label="Views">
          {views.map((name) => (
            <a
              key={name}
              href={linkTo(name, pick(params, SHARED))}
              aria-current={name === view ? 'page' : undefined}
            >
              {labelOf(name)}
            </a>
          ))}
        </nav>
        <span class="who">
          <bdi>{isAdmin ? 'Admin' : (key?.name ?? key?.id ?? '')}</bdi>
          <button type="button" class="quiet" onClick={signOut}>
            Sign out
          </button>
        </span>
      </header>
      <main>
        <h1 class="sr">{label}</h1>
        <ViewOf view={view} params={params} isAdmin={isAdmin} />
      </main>
    </>
  );
}

/** The parameters that a change of the view keeps. */
const SHARED = ['range', 'from', 'to', 'key', 'model', 'user', 'session', 'app', 'tag', 'refresh'];

function ViewOf({ view, params, isAdmin }: { view: View; params: Params; isAdmin: boolean }) {
  switch (view) {
    case 'overview':
      return <Overview params={params} />;
    case 'requests':
      return <Requests params={params} />;
    case 'keys':
      return isAdmin ? <Keys params={params} /> : <OwnKey />;
    case 'health':
      return <Health params={params} />;
    case 'live':
      return <Live params={params} />;
  }
}
