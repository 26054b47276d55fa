/** The session that every view is within, and how to leave it. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Session } from './session.ts';

export interface Signed extends Session {
  readonly signOut: () => void;
}

export const SessionContext = createContext<Signed | null>(null);

export function useSession(): Signed {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('Nobody is signed in');
  return session;
}
