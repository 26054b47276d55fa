/** The sign-in form. It does not reveal which tokens the deployment has. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Session, signIn, storeToken } from '../state/session.ts';

const REFUSALS = {
  refused: 'This token is not accepted.',
  offline: "The deployment can't be reached. You may be offline.",
} as const;

interface SignInProps {
  readonly onSignedIn: (session: Session) => void;
  /** The page was opened by a shared link whose token is not accepted. */
  readonly hasEndedLink?: boolean;
}

export function SignIn({ onSignedIn, hasEndedLink = false }: SignInProps) {
  const [token, setToken] = useState('');
  const [isKept, setKept] = useState(true);
  const [state, setState] = useState<'idle' | 'busy' | keyof typeof REFUSALS>('idle');
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const isRefused = state === 'refused' || state === 'offline';

  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setState('busy');
    const result = await signIn(token.trim());
    if (result.kind !== 'session') return setState(result.kind);
    if (isKept) storeToken(token.trim());
    onSignedIn(result.session);
  };

  return (
    <main class="sign-in">
      <h1>Weir</h1>
      <p>What your models cost, and what they stream.</p>
      {hasEndedLink && (
        <p class="problem" role="alert">
          This link has expired or was revoked.
        </p>
      )}
      <form onSubmit={submit}>
        <label for="token">Admin token or gateway key</label>
        {/* Password managers need a user name beside the password. */}
        <input hidden autocomplete="username" value="weir" />
        <input
          ref={field}
          id="token"
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          value={token}
          aria-invalid={isRefused}
          aria-describedby="token-hint"
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={isKept}
            onChange={(event) => setKept(event.currentTarget.checked)}
          />
          Keep it for this tab
        </label>
        <button type="submit" class="primary" disabled={state === 'busy'}>
          {state === 'busy' ? 'Signing in …' : 'Sign in'}
        </button>
        {isRefused && (
          <p class="problem" role="alert">
            {REFUSALS[state]}
          </p>
        )}
        <p id="token-hint" class="hint">
          A key sees its own use, the admin token everything. It stays in this tab, and is sent to this
          deployment alone.
        </p>
      </form>
    </main>
  );
}
