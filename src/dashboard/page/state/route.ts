/** The current view and its parameters, in the fragment of the URL, so that a link can be shared. */
import { useEffect, useState } from 'preact/hooks';

export const VIEWS = ['overview', 'now', 'requests', 'keys', 'live', 'health', 'audit'] as const;
/** Views of routes that only the admin may call. */
export const ADMIN_VIEWS: readonly View[] = ['health', 'audit'];
/** Views of a key, or of the admin. A token that reads usage has none. */
export const KEY_VIEWS: readonly View[] = ['keys', 'live'];
export type View = (typeof VIEWS)[number];

export type Params = Readonly<Record<string, string>>;

export interface Route {
  /** Null: there is no such view. */
  readonly view: View | null;
  readonly params: Params;
  /** Names of parameters that no view has. */
  readonly unknown: readonly string[];
}

const PARAMS = new Set(
  'range from to hour refresh by metric currency key model provider status user session app tag route client search truncated id team a b'.split(
    ' ',
  ),
);

function readRoute(): Route {
  const [name, query] = location.hash.replace(/^#\/?/, '').split('?');
  const view = name === '' ? 'overview' : (VIEWS.find((known) => known === name) ?? null);
  const params: Params = Object.fromEntries(new URLSearchParams(query));
  return { view, params, unknown: Object.keys(params).filter((param) => !PARAMS.has(param)) };
}

/** Undefined removes a parameter, and so does an empty value of most. */
export type Change = Readonly<Record<string, string | undefined>>;

/** Filters whose empty value selects the requests without a name. */
const MAY_BE_EMPTY = ['user', 'session', 'app'];

/** The parameters of these names that have a value. */
export function pick(params: Change, names: readonly string[] = Object.keys(params)): Params {
  return Object.fromEntries(
    names.flatMap((name) => {
      const { [name]: value } = params;
      return value || (value === '' && MAY_BE_EMPTY.includes(name)) ? [[name, value]] : [];
    }),
  );
}

/** The URL of a view with these parameters and changes. */
export function linkTo(view: View, params: Params, change: Change = {}): string {
  const query = new URLSearchParams(pick({ ...params, ...change })).toString();
  return query === '' ? `#/${view}` : `#/${view}?${query}`;
}

export function goTo(view: View, params: Params, change: Change = {}): void {
  location.hash = linkTo(view, params, change);
}

export function useRoute(): Route {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const updateRoute = () => setRoute(readRoute());
    addEventListener('hashchange', updateRoute);
    return () => removeEventListener('hashchange', updateRoute);
  }, []);
  return route;
}
