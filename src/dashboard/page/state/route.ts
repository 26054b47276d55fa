/** Where the reader is: a view and what it is narrowed to, kept in the URL behind `#`, so that it can be sent to someone. */
import { useEffect, useState } from 'preact/hooks';

export const VIEWS = ['overview', 'requests', 'keys', 'live'] as const;
export type View = (typeof VIEWS)[number];

export type Params = Readonly<Record<string, string>>;

export interface Route {
  readonly view: View;
  readonly params: Params;
}

function readPlace(): Route {
  const [name, query] = location.hash.replace(/^#\/?/, '').split('?');
  const view = VIEWS.find((known) => known === name) ?? 'overview';
  return { view, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** Undefined and empty values take a parameter away. */
export type Change = Readonly<Record<string, string | undefined>>;

/** A link's address: those parameters, with the changes on top. */
export function linkTo(view: View, params: Params, change: Change = {}): string {
  const merged = Object.entries({ ...params, ...change }).filter(([, value]) => value);
  const query = new URLSearchParams(merged.map(([name, value]) => [name, value ?? ''])).toString();
  return query === '' ? `#/${view}` : `#/${view}?${query}`;
}

export function goTo(view: View, params: Params, change: Change = {}): void {
  location.hash = linkTo(view, params, change);
}

export function useRoute(): Route {
  const [place, setPlace] = useState(readPlace);
  useEffect(() => {
    const read = () => setPlace(readPlace());
    addEventListener('hashchange', read);
    return () => removeEventListener('hashchange', read);
  }, []);
  return place;
}
