/** The page's frame: the session, the navigation and the current view. */
import { useEffect, useState } from 'preact/hooks';
import { setZone, ZONE_CHANGE, zoneOf } from './format/zone.ts';
import { DocsLink } from './parts/docs.tsx';
import { Menu } from './parts/menu.tsx';
import { useTables } from './parts/table.tsx';
import { useLoad } from './state/load.ts';
import {
  ADMIN_VIEWS,
  KEY_VIEWS,
  linkTo,
  type Params,
  pick,
  useRoute,
  VIEWS,
  type View,
} from './state/route.ts';
import {
  forgetToken,
  isMoreThanReader,
  readStoredToken,
  type Session,
  SessionContext,
  signIn,
  storeToken,
  takeLinkToken,
  useSession,
} from './state/session.ts';
import { Audit } from './views/audit/audit.tsx';
import { Health } from './views/health/health.tsx';
import { Keys } from './views/keys/keys.tsx';
import { OwnKey } from './views/keys/own-key.tsx';
import { Live } from './views/live/live.tsx';
import { Now } from './views/now/now.tsx';
import { Overview } from './views/overview/overview.tsx';
import { Requests } from './views/requests/requests.tsx';
import { SavedViews } from './views/saved.tsx';
import { SignIn } from './views/sign-in.tsx';

export function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [linkToken] = useState(takeLinkToken);
  /** The token of a shared link that would replace the session. */
  const [offered, setOffered] = useState(() => {
    if (linkToken === null || isMoreThanReader(null)) return linkToken;
    storeToken(linkToken);
    return null;
  });
  /** The stored token was refused. */
  const [hasFailed, setFailed] = useState(false);
  const [isReturning, setReturning] = useState(() => readStoredToken() !== null);

  useEffect(() => {
    const token = readStoredToken();
    if (token === null) return;
    void signIn(token).then((result) => {
      if (result.kind === 'session') setSession(result.session);
      else if (result.kind === 'refused') {
        forgetToken();
        setFailed(true);
      }
      setReturning(false);
    });
  }, []);

  // A link that is opened in a tab with the page changes only its hash.
  useEffect(() => {
    const takeLink = () => {
      const token = takeLinkToken();
      if (token === null) return;
      if (isMoreThanReader(session)) setOffered(token);
      else openLink(token);
    };
    addEventListener('hashchange', takeLink);
    return () => removeEventListener('hashchange', takeLink);
  }, [session]);

  const signOut = () => {
    forgetToken();
    setSession(null);
  };

  if (offered !== null)
    return (
      <LinkQuestion name={session?.name} onOpen={() => openLink(offered)} onStay={() => setOffered(null)} />
    );
  if (session === null)
    return isReturning ? (
      <main class="sign-in" aria-busy="true">
        <h1>Weir</h1>
        <p class="hint">Signing in …</p>
      </main>
    ) : (
      <SignIn onSignedIn={setSession} hasEndedLink={linkToken !== null && hasFailed} />
    );
  return (
    <SessionContext.Provider value={{ ...session, signOut }}>
      <Frame />
    </SessionContext.Provider>
  );
}

function openLink(token: string): void {
  storeToken(token);
  location.reload();
}

interface LinkQuestionProps {
  /** Who is signed in, once that is known. */
  readonly name: string | undefined;
  readonly onOpen: () => void;
  readonly onStay: () => void;
}

/** Asks before a shared link replaces the session: the link may be of another deployment's admin, or of nobody the reader knows. */
function LinkQuestion({ name, onOpen, onStay }: LinkQuestionProps) {
  return (
    <main class="sign-in">
      <h1>Weir</h1>
      <p role="alert">
        This link has a token of its own, which only reads usage. It would replace your session in this tab
        {name !== undefined && (
          <>
            {' '}
            (<bdi>{name}</bdi>)
          </>
        )}
        .
      </p>
      <p class="send">
        <button type="button" class="primary" onClick={onStay}>
          Stay signed in
        </button>
        <button type="button" onClick={onOpen}>
          Use the link’s token
        </button>
      </p>
    </main>
  );
}

const LABELS: Readonly<Record<View, string>> = {
  overview: 'Overview',
  now: 'Now',
  requests: 'Requests',
  keys: 'Keys',
  live: 'Live',
  health: 'Health',
  audit: 'Audit',
};

/** The documents about each view. */
const DOCS: Readonly<Record<View, string>> = {
  overview: 'metering/reports',
  now: 'dashboard/views',
  requests: 'metering/usage-records',
  keys: 'keys',
  live: 'streams/frames',
  health: 'operations/status',
  audit: 'keys/audit',
};

/** What is about the part of a view that its parameters choose. */
function docsOf(view: View, { session, team, id }: Params, isAdmin: boolean): string {
  if (view === 'requests' && session !== undefined) return 'prompt-caches';
  if (view === 'keys' && !isAdmin) return 'clients';
  if (view === 'keys' && team !== undefined) return 'budgets/teams';
  if (view === 'keys' && id !== undefined) return 'budgets/see-what-is-left';
  return DOCS[view];
}

function Frame() {
  const { isAdmin, key, name, signOut } = useSession();
  const { view: named, params, unknown } = useRoute();
  const [zone, setShownZone] = useState(zoneOf);
  useEffect(() => {
    const updateZone = () => setShownZone(zoneOf());
    addEventListener(ZONE_CHANGE, updateZone);
    return () => removeEventListener(ZONE_CHANGE, updateZone);
  }, []);
  const isReader = !isAdmin && key === null;
  const views = VIEWS.filter(
    (name) => isAdmin || !(ADMIN_VIEWS.includes(name) || (isReader && KEY_VIEWS.includes(name))),
  );
  const view = named !== null && views.includes(named) ? named : null;
  const [hasViews, setViews] = useState(false);
  const labelOf = (name: View) => (name === 'keys' && !isAdmin ? 'Key' : LABELS[name]);
  const label = view === null ? 'Unknown address' : labelOf(view);
  useEffect(() => {
    document.title = `${label} – Weir`;
  }, [label]);
  return (
    <>
      <header class="top">
        <a class="brand" href={linkTo('overview', {})}>
          <Logo />
          Weir
        </a>
        <nav aria-label="Views">
          {views.map((one) => (
            <a
              key={one}
              href={linkTo(one, pick(params, SHARED))}
              aria-current={one === view ? 'page' : undefined}
            >
              {labelOf(one)}
            </a>
          ))}
        </nav>
        <span class="who">
          <bdi>{name}</bdi>
          <label class="inline">
            <span class="sr">Times in</span>
            <select
              value={zoneOf()}
              onChange={(event) => setZone(event.currentTarget.value === 'local' ? 'local' : 'UTC')}
            >
              <option value="UTC">UTC</option>
              <option value="local">My time</option>
            </select>
          </label>
          <SaveMenu />
          {view !== null && (
            <DocsLink to={docsOf(view, params, isAdmin)} about={`Docs about ${label}`}>
              Docs
            </DocsLink>
          )}
          {view !== null && (
            <button type="button" class="quiet" onClick={() => setViews(true)}>
              Views
            </button>
          )}
          <button type="button" class="quiet" onClick={signOut}>
            Sign out
          </button>
        </span>
      </header>
      <main>
        <h1 class="sr">{label}</h1>
        {unknown.length > 0 && (
          <p class="problem" role="status">
            This page does not know <bdi>{unknown.join(', ')}</bdi> in its address.
          </p>
        )}
        {view === null ? (
          <UnknownView isOfAdmin={named !== null && ADMIN_VIEWS.includes(named)} />
        ) : (
          <ViewOf key={zone} view={view} params={params} isAdmin={isAdmin} />
        )}
      </main>
      {hasViews && view !== null && (
        <SavedViews {...{ view, label, params }} onClose={() => setViews(false)} />
      )}
      <Foot />
    </>
  );
}

/** Water over a weir. */
function Logo() {
  return (
    <svg class="logo" width="20" height="20" viewBox="0 0 16 16" aria-hidden="true">
      <rect class="ground" width="16" height="16" rx="4" />
      <path d="M2.5 5.5h5.5v5h5.5" />
    </svg>
  );
}

/** The one place that saves tables. */
function SaveMenu() {
  const tables = useTables();
  if (tables.length === 0) return null;
  const actions = tables.map(([label, act]) => ({ label, name: `${label} as CSV`, act }));
  return (
    <Menu name="Tables as CSV" actions={actions}>
      CSV
    </Menu>
  );
}

function UnknownView({ isOfAdmin }: { isOfAdmin: boolean }) {
  return (
    <div class="empty">
      <strong>{isOfAdmin ? 'Only the admin has this view' : 'There is no such view'}</strong>
      <p>
        <bdi>{location.hash}</bdi>
      </p>
      <p>
        <a href={linkTo('overview', {})}>Overview</a>
      </p>
    </div>
  );
}

function Foot() {
  const { api } = useSession();
  const { value } = useLoad<{ readonly version?: string }>((signal) => api.get('/health', {}, signal), [api]);
  return <footer class="hint page-foot">{value?.version && `Weir ${value.version}`}</footer>;
}

/** The parameters that a change of the view keeps. */
const SHARED = ['range', 'from', 'to', 'key', 'model', 'user', 'session', 'app', 'tag', 'refresh'];

function ViewOf({ view, params, isAdmin }: { view: View; params: Params; isAdmin: boolean }) {
  switch (view) {
    case 'overview':
      return <Overview params={params} />;
    case 'now':
      return <Now params={params} />;
    case 'requests':
      return <Requests params={params} />;
    case 'keys':
      return isAdmin ? <Keys params={params} /> : <OwnKey />;
    case 'health':
      return <Health params={params} />;
    case 'audit':
      return <Audit params={params} />;
    case 'live':
      return <Live params={params} />;
  }
}
