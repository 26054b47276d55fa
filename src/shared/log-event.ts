/** The events of the log: when each is written, and its fields. After a change: npm run tables, which writes docs/operations.md. */

export const LOG_EVENTS = [
  /** a request to a provider has ended. Fields: those of the [usage record](docs/metering.md#usage-records), with `cost_nanos` */
  'request',
  /**
   * [refused](docs/metering.md#refused-requests) before a provider was called. Fields: `request_id`, `key_id`, `route`,
   * `status`, `code`
   */
  'request_refused',
  /**
   * as in the [audit](docs/keys.md#audit). Fields: `request_id`, `actor`, `key_id` (`budget_added` of a team: `team`),
   * `before`, `after`
   */
  ...(['key_created', 'key_changed', 'key_revoked', 'budget_added'] as const),
  /** as in the [audit](docs/keys.md#audit). Fields: `request_id`, `actor`, `team`, `before`, `after` */
  ...(['team_created', 'team_changed', 'team_deleted'] as const),
  /**
   * an [erasure](docs/privacy.md#erase-a-user) came to a phase; without the name. Fields: `erasure`, `actor`; `phase`,
   * and counts of what was deleted
   */
  ...(['erasure_started', 'erasure_advanced'] as const),
  /** a step is tried again in a minute; **act** if it persists. Fields: `erasure`, `reason` */
  'erasure_failed',
  /** KV does not say whose requests are refused, so that none is. Fields: `reason` */
  'erasing_users_unreadable',
  /** an entry of the audit, or a revoked key's name; **act** if it persists: check KV. Fields: `request_id`, `key_id`, `reason` */
  'audit_not_stored',
  /** at start: [invalid settings](docs/settings.md#invalid-settings); **act**. Fields: `problems`, a list of `setting` and `message` */
  'misconfigured',
  /**
   * at start: no provider's key, or `AUTH=keys` without `ADMIN_TOKEN`, `ACCESS_ADMINS` and `onRequest`; **act**.
   * Fields: `setting`, `message`
   */
  'setting_missing',
  /**
   * of a [feature](docs/embedding.md#features) that a host Worker does not list, or a key of a provider that has it
   * from another setting (`GOOGLE_API_KEY` beside `GEMINI_API_KEY`). Fields: `setting`, `message`
   */
  'setting_unused',
  /**
   * at start: a variable resembles a setting that is not set (`LEGDER`), or looks like a provider's secret and is used
   * by none (`TOGETHERAI_API_KEY`). Fields: `setting`, `message`
   */
  'setting_unknown',
  /** at start: `ADMIN_TOKEN` has fewer than 16 characters; **act**. Fields: `setting`, `message` */
  'setting_weak',
  /**
   * in [Secrets Store](docs/settings.md#w5), at each try; what needs it gets 503; **act** if it persists: check the
   * store, its name and its scope. Fields: `setting`, `reason`
   */
  'secret_unreadable',
  /**
   * a provider's list of models could not be read: check its key and base URL; nothing is left to list. Fields:
   * `provider`, `cause`, `check`; `notice`
   */
  ...(['models_unavailable', 'models_empty'] as const),
  /**
   * a usage record could not be stored; **act**: [what can be lost](docs/operations.md#what-can-be-lost). Fields:
   * `reason`, `record` with all of it
   */
  'record_lost',
  /**
   * the daily run stored [dead letters](docs/ledgers.md#ledgerobject); **act** if `left` is not 0 on two days. Fields:
   * `settled`, `left`
   */
  'dead_letters_stored',
  /**
   * the oldest records of a full object are in [the archive](docs/ledgers.md#records-leave-an-object). Fields:
   * `key_id`, `records`, `before` (all records from before it have left)
   */
  'records_archived',
  /** the same without an archive; **act**: bind `WEIR_ARCHIVE`, or export more often. Fields: `key_id`, `records`, `before` */
  'records_deleted',
  /** records stay in their object; tried again each minute; **act** if it persists: check the bucket. Fields: `key_id`, `reason` */
  'archive_failed',
  /** for 5 s; **act** if it persists. Fields: `request_id`, `key_id`, `reason` */
  'ledger_unreachable',
  /**
   * a key's requests get 500; **act**: [set the limits anew](docs/budgets.md#limits-that-cannot-be-read). Fields:
   * `request_id`, `key_id`, `reason`
   */
  'ledger_unreadable',
  /** charged in full; **act** if it is frequent: isolates end, for example for CPU or memory. Fields: `key_id` and the reservation */
  'reservation_expired',
  /**
   * all that a key or a user held of its team or key was [charged](docs/budgets.md#requests-that-never-settle), because
   * its object was silent. Fields: `key_id` (of a team: its object), `level`, `day` and the amounts
   */
  'lease_expired',
  /** a request under an overdrawn `warn` budget. Fields: `request_id`, `key_id`, `by` */
  'budget_overdrawn',
  /**
   * a budget has reached a [percentage](docs/alerts.md#budgets). Fields: `id`, `key_id` or `team`, `percent`, `unit`,
   * `per`, `period`, `spent`, `limit`
   */
  'budget_alert',
  /** `ALERT_URL` did not take an alert, also not within a day; **act** if it persists. Fields: `key_id`, `id`, `reason` */
  ...(['budget_alert_failed', 'budget_alert_lost'] as const),
  /**
   * a provider [fails](docs/alerts.md#providers), or refuses this deployment's key; **act**. Fields: `id`, `time`,
   * `provider`; `requests`, `failed_requests`, `minutes`, `last`; `request_id`, `setting`, `model`, `status`,
   * `error_code`, `message`
   */
  ...(['provider_failing', 'credential_refused'] as const),
  /**
   * [the week that ended](docs/alerts.md#weekly-summary), with `ALERT_URL`. Fields: `id`, `time`, `period`, `from`,
   * `to`, sums, `models`, `keys`
   */
  'weekly_summary',
  /**
   * `ALERT_URL` did not take an alert of a provider or week, also not within a day, or there were too many in an hour;
   * **act** if it persists. Fields: `id`, `reason`
   */
  ...(['alert_failed', 'alert_lost'] as const),
  /** a [running budget](docs/budgets.md#running-budgets) ended a stream. Fields: `request_id`, `key_id`, `output_tokens` */
  'budget_ended',
  /** [a foreground response](docs/durable-responses.md#what-is-kept); **act** if it persists. Fields: `request_id`, `reason` */
  'response_not_stored',
  /** a background response counts in the index with an assumed size; **act** if it persists. Fields: `response_id`, `reason` */
  'response_not_settled',
  /** the object restarted during a run, as at a deployment; **act** if it is frequent. Fields: `request_id` */
  'response_interrupted',
  /** a failure in Weir ended a background run; **act**: report it. Fields: `request_id`, `reason` */
  'response_run_failed',
  /** a response's object restarts; **act** if it persists. Fields: `request_id` of a background run, `reason` */
  'response_storage_failed',
  /** written by a later version, or damaged: return to that version, or delete it. Fields: `reason` */
  'response_unreadable',
  /**
   * a [circuit breaker](docs/routing.md#circuit-breaker) skips a target in this isolate until a success; **act** on
   * opened. Fields: `request_id`, `provider`, `model`; opened also `key_id` (null: for all callers), `failures`,
   * `open_until`, and of the failure `status`, `error_code`, `message` (the provider's), `cause` (the address and what
   * to check)
   */
  ...(['circuit_opened', 'circuit_closed'] as const),
  /**
   * [a refusal changed a request](docs/refusals.md#how-to-see-it-and-to-turn-it-off): report `table`, or add it.
   * Fields: `provider`, `model`, `finding`, `conditions`, `table`
   */
  'provider_learned',
  /**
   * OpenAI removed reasoning from the input: the client edits its history (`prefix_mismatch`), or several organizations
   * share the traffic. Fields: `request_id`, `provider`, `model`, `reasons`
   */
  'reasoning_removed',
  /** Access's keys could not be read: check `ACCESS_TEAM_DOMAIN`. Fields: `reason` */
  'access_unreachable',
  /** a provider's token counter; the client got an estimate. Fields: `request_id`, `provider`, `model`, `reason` */
  'counter_failed',
  /**
   * no session or token for [a credential that is made](docs/clouds.md#credentials-that-are-made); **act**: check the
   * setting. Fields: `setting`, `reason`
   */
  'credential_failed',
  /**
   * this isolate's clock differs from the one of a server that checks signatures, whose time is used from then on.
   * Fields: `server`, `seconds`
   */
  'clock_corrected',
  /** the binding `LIMITER`; the request continued. Fields: `reason` */
  'limiter_failed',
  /** `config/prices` is not used; **act**: correct it. Fields: `key`, `problem` (the price and the field) */
  'prices_unreadable',
  /** counts of refused requests; tried again. Fields: `reason` */
  'refusals_not_written',
  /** `onRequest` or `onRecord` threw; **act**. Fields: `hook`, `request_id`, `reason` */
  'hook_failed',
  /** check `ORIGIN`. Fields: `reason` */
  'origin_unreachable',
  /** a failure in Weir: the client gets 500; **act**: report it. Fields: `request_id`, `reason` */
  'internal_error',
] as const;

export type LogEvent = (typeof LOG_EVENTS)[number];

/** A line of the log. Values must have no prompt, output, credential or, with `USERS=off` and `hash`, name of a user. */
export interface LogEntry {
  readonly event: LogEvent;
  readonly [field: string]: unknown;
}

/** @param text the entry as JSON, if the caller already has it */
export type Log = (entry: LogEntry, text?: string) => void;
