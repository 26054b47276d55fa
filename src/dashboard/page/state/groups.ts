/** The groups of requests: their labels, and the filter that selects the requests of one. */
import type { GroupName } from '../api/types.ts';
import type { Params } from './route.ts';

export const TAG = 'tag:';

export const GROUP_LABELS: Readonly<Record<string, string>> = {
  model: 'Model',
  provider: 'Provider',
  key: 'Key',
  status: 'Status',
  error: 'Cause',
  user: 'User',
  session: 'Session',
  app: 'App',
  tag: 'Tag',
};

/** The filters of the overview. */
export const FILTERS = Object.keys(GROUP_LABELS);
/** Why requests failed, as reports and records name it. */
export const FAILURE_FILTERS = ['fault', 'error'];
/** Filters whose value can be any text. */
export const TEXT_FILTERS = ['user', 'session', 'app', 'tag', 'model', 'provider'];

/** The group that sums the rows beyond the limit of a report. */
export const OTHER = '(other)';
const TAG_NAME = /^tag:[a-z0-9_.-]{1,32}$/;

export function isTagGroup(by: string): by is `tag:${string}` {
  return TAG_NAME.test(by);
}

/** Whether callers choose the names of a group's values. */
export function isFactGroup(by: GroupName): boolean {
  return by.startsWith(TAG) || ['user', 'session', 'app'].includes(by);
}

export function groupLabel(by: GroupName): string {
  return by.startsWith(TAG) ? `Tag ${by.slice(TAG.length)}` : (GROUP_LABELS[by] ?? by);
}

/** Null: no filter selects these requests. */
export function filterOf(by: GroupName, id: string): Params | null {
  if (id === OTHER) return null;
  return by.startsWith(TAG) ? { tag: `${by.slice(TAG.length)}:${id}` } : { [by]: id };
}

/** A value of a group or filter in words: requests without a name have the name ''. */
export function valueLabel(name: string, value: string, nameOf: (key: string) => string): string {
  if (name === 'key') return nameOf(value);
  if (value === OTHER) return 'all others';
  if (name === 'tag' && value.endsWith(':')) return `${value} none`;
  if (value === '') return name === 'error' ? 'no error' : 'none';
  return value;
}
