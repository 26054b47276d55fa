/** Counts of requests that were refused before any provider was called, by reason and, for the admin, by key. */
import type { ErrorCode } from '../../../../canonical/error.ts';
import type { RefusalRow, Refusals } from '../../api/types.ts';
import { type Column, numberColumn, Table } from '../../parts/table.tsx';

const PAGE = [50, 200] as const;

/** The meaning of each error code with which Weir refuses a request. */
const REASONS: Readonly<Record<ErrorCode | 'previous_response_not_found', string>> = {
  invalid_json: 'a body that is not JSON',
  unsupported_encoding: 'a body that is compressed, or not UTF-8',
  invalid_request: 'a mistake in the request',
  unsupported_route: 'a route that the provider does not have',
  unsupported_parameter: 'a field that the provider does not have',
  user_required: 'no user, which the key requires',
  user_being_erased: 'the data of the user is being erased',
  previous_response_not_found: 'it continues a response that is not kept',
  invalid_api_key: 'no key, or a wrong, revoked, disabled or expired one',
  model_not_allowed: 'a model that the key may not use',
  cross_site: 'another site may have sent it',
  groups_unknown: 'a person whose groups, and so whose team, are not known',
  admin_closed: 'no admin token is set up',
  not_found: 'an unknown path or record',
  model_not_found: 'an unknown model',
  team_has_keys: 'a team that has keys is not deleted',
  method_not_allowed: 'a method that the route does not have',
  websocket_unsupported: 'a WebSocket',
  request_timeout: 'its body did not arrive in time',
  request_too_large: 'a body above MAX_REQUEST_BYTES',
  rate_limited: "the key's own rate limit",
  budget_exceeded: "the key's budget",
  kept_limit_reached: 'its owner keeps as many responses as it may',
  misconfigured: 'an invalid setting',
  internal_error: 'a failure in Weir',
  ledger_unreadable: "the key's limits cannot be read",
  response_unreadable: 'a kept response cannot be read',
  overloaded: 'no room for a large body',
  access_unreachable: 'Cloudflare Access cannot be reached',
  secret_unreadable: 'A secret that it needs cannot be read',
  ledger_unreachable: "the key's ledger cannot be reached",
  ledger_overloaded: "the key's ledger gets more requests than it takes",
  origin_loop: 'ORIGIN leads back to the Worker',
  upstream_credential: "the provider refuses the deployment's key",
  upstream_balance: "the provider refuses the deployment's balance",
  upstream_refused: 'the provider refuses the request',
  upstream_unreachable: 'no connection to the provider or the origin',
  upstream_error: 'a failure of the provider',
  upstream_invalid: 'an invalid response of the provider',
  upstream_truncated: 'a response that was cut',
  upstream_event_too_large: 'a response that is too large',
  upstream_overloaded: 'an outage of the provider, whose attempts may be billed',
  interrupted: 'a background run was interrupted',
  timeout: 'it took too long',
  stream_idle_timeout: 'the provider sent nothing for too long',
};
const REASONS_BY_CODE: ReadonlyMap<string, string> = new Map(Object.entries(REASONS));

interface RefusedProps {
  readonly refusals: Refusals;
  /** Null: all requests are the signed-in key's. */
  readonly nameOf: ((id: string) => string) | null;
}

export function Refused({ refusals: { data }, nameOf }: RefusedProps) {
  if (data.length === 0) return null;
  const columns: readonly Column<RefusalRow>[] = [
    { head: 'Code', value: ({ code }) => code, cell: ({ code }) => <bdi class="code">{code}</bdi> },
    { head: 'Reason', look: 'hint limits', value: ({ code = '' }: RefusalRow) => REASONS_BY_CODE.get(code) },
    ...(nameOf === null
      ? []
      : [
          {
            head: 'Key',
            look: 'name',
            value: ({ key = '' }: RefusalRow) => nameOf(key),
            cell: keyCell(nameOf),
          },
        ]),
    numberColumn('Refused', (row) => row.refused_requests),
  ];
  return (
    <Table
      title
      label="Refused requests"
      columns={columns}
      items={data}
      sortedBy="-Refused"
      page={PAGE}
      idOf={({ code, key }) => `${code} ${key}`}
    />
  );
}

function keyCell(nameOf: (id: string) => string) {
  return ({ key = '' }: RefusalRow) => <bdi title={key}>{key === 'none' ? 'unknown' : nameOf(key)}</bdi>;
}
