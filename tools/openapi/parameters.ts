/** Query parameters of operations. Their names are the lists by which the code refuses other parameters. */
import { AUDIT_PARAMS } from '../../src/api/audit.ts';
import { KEY_PARAMS } from '../../src/api/keys.ts';
import { STATUS_PARAMS } from '../../src/api/status.ts';
import { REFUSAL_PARAMS, USAGE_PARAMS } from '../../src/api/usage.ts';
import { RECORD_PARAMS } from '../../src/api/usage-records.ts';
import { GROUPS } from '../../src/metering/report.ts';

type Name =
  | (typeof USAGE_PARAMS)[number]
  | (typeof REFUSAL_PARAMS)[number]
  | (typeof RECORD_PARAMS)[number]
  | (typeof AUDIT_PARAMS)[number]
  | (typeof KEY_PARAMS)[number]
  | (typeof STATUS_PARAMS)[number];
type Query = Readonly<Record<string, string>>;

const THIS_VALUE = 'only requests with this value';

const TEXTS: Readonly<Record<Name, string>> = {
  from: 'a day or a UTC time (2026-11-01T12:00:00Z); default: the first of this month',
  to: 'exclusive; default: the end of today; at most 366 days after from',
  group_by: `with commas: ${GROUPS.join(', ')}, tag:<name>; key for the admin`,
  limit: '1 to 1,000; default 100',
  format: 'json or csv',
  cursor: 'next_cursor of the page before, until has_more is false; a page may be empty',
  search:
    "part of the model's names, the id of request or key, the user, session or app; at most 200 characters",
  key: 'the id of a key, for the admin',
  provider: THIS_VALUE,
  model: 'the requested model, or the address that served',
  route: THIS_VALUE,
  client: THIS_VALUE,
  status: 'one status, or several with commas',
  fault: THIS_VALUE,
  error: THIS_VALUE,
  truncated: 'true: only outputs that began and then failed',
  user: 'only requests of this user; empty: of none (docs/attribution.md#reports)',
  session: THIS_VALUE,
  app: THIS_VALUE,
  cache_cause: THIS_VALUE,
  tag: '<name>:<value>',
  team: THIS_VALUE,
  only: 'isolate: in_flight and circuits alone, without a read of the ledger',
};

/** @param own texts that differ from those of other operations */
function described<N extends Name>(names: readonly N[], own: { readonly [name in N]?: string } = {}): Query {
  return Object.fromEntries(names.map((name) => [name, own[name] ?? TEXTS[name]]));
}

export const USAGE_QUERY = described(USAGE_PARAMS, {
  limit: 'rows, 1 to 10,000; default 10,000, and 1,000 by user, session, app or tag',
  model: 'the address that served',
  status: THIS_VALUE,
});
export const REFUSAL_QUERY = described(REFUSAL_PARAMS, { group_by: 'code, hour, day, key' });
export const RECORD_QUERY = described(RECORD_PARAMS);
export const AUDIT_QUERY = described(AUDIT_PARAMS, { key: 'the id of a key' });
export const KEY_QUERY = described(KEY_PARAMS, { user: 'also the use of this user' });
export const STATUS_QUERY = described(STATUS_PARAMS);
