/** The events of the log. docs/operations.md has when each is written, and its fields. */

export const LOG_EVENTS = [
  ...(['request', 'request_refused', 'record_lost', 'dead_letters_stored', 'reasoning_removed'] as const),
  ...(['key_created', 'key_changed', 'key_revoked', 'budget_added', 'audit_not_stored'] as const),
  ...(['erasure_started', 'erasure_advanced', 'erasure_failed', 'erasing_users_unreadable'] as const),
  ...(['misconfigured', 'setting_missing', 'setting_unused', 'setting_unknown', 'setting_weak'] as const),
  ...(['secret_unreadable', 'models_unavailable', 'models_empty', 'counter_failed'] as const),
  ...(['credential_failed', 'clock_corrected'] as const),
  ...(['records_archived', 'records_deleted', 'archive_failed'] as const),
  ...(['ledger_unreachable', 'ledger_unreadable', 'reservation_expired', 'refusals_not_written'] as const),
  ...(['budget_overdrawn', 'budget_alert', 'budget_alert_failed', 'budget_alert_lost'] as const),
  ...(['provider_failing', 'credential_refused', 'weekly_summary', 'alert_failed', 'alert_lost'] as const),
  ...(['budget_ended', 'limiter_failed', 'prices_unreadable', 'access_unreachable'] as const),
  ...(['response_not_stored', 'response_not_settled', 'response_interrupted'] as const),
  ...(['response_run_failed', 'response_storage_failed', 'response_unreadable'] as const),
  ...(['circuit_opened', 'circuit_closed', 'provider_learned'] as const),
  ...(['hook_failed', 'origin_unreachable', 'internal_error'] as const),
] as const;

export type LogEvent = (typeof LOG_EVENTS)[number];

/** A line of the log. Values must have no prompt, output, credential or, with `USERS=off` and `hash`, name of a user. */
export interface LogEntry {
  readonly event: LogEvent;
  readonly [field: string]: unknown;
}

export type Log = (entry: LogEntry) => void;
