/** Describes how a request ended, from the codes in its record. */
import { type FinishReason, finishReason } from '../../../canonical/finish-reason.ts';
import type { Status, UsageRecord } from '../api/types.ts';
import { count } from './numbers.ts';

export const STATUSES: readonly Status[] = ['finished', 'failed', 'timed_out', 'cancelled'];

/** One or more statuses in words. */
export function statusWords(statuses: string): string {
  return statuses.replace('_', ' ').replace(',', ' or ');
}

const FINISHES: Readonly<Record<FinishReason, string>> = {
  stop: 'The model ended its answer.',
  length: 'The answer reached its output limit.',
  content_filter: "The provider's content filter ended the answer.",
  tool_calls: 'The answer ended with tool calls.',
};

/** The meaning of each error code. */
const ERRORS: Readonly<Record<string, string>> = {
  upstream_truncated: "The provider's stream broke off before the answer was finished.",
  stream_idle_timeout: 'The provider fell silent for IDLE_TIMEOUT_SECONDS.',
  timeout: 'It took longer than DEADLINE_SECONDS.',
  upstream_invalid: 'The provider sent no valid answer.',
  upstream_event_too_large: 'The provider sent an event above MAX_EVENT_BYTES.',
  upstream_error: 'The provider reported an error of its own.',
  upstream_overloaded: 'The provider is overloaded.',
  upstream_unreachable: "The provider can't be reached.",
  upstream_credential: "The provider refuses this deployment's own key.",
  upstream_refused: 'The provider refuses this request.',
  upstream_balance: 'The account at the provider has no balance left.',
  rate_limited: "The provider's rate limit refused it.",
  invalid_request: 'The provider refuses the request.',
  invalid_api_key: "The provider refuses the caller's key.",
  model_not_allowed: 'The provider does not allow the model.',
  not_found: 'The provider does not have what the request names.',
  model_not_found: 'The provider does not have the model.',
  request_too_large: 'The request is too large for the provider.',
  content_filter: "The provider's content filter stopped the prompt.",
  unsupported_parameter: 'The provider does not support a field of the request.',
  budget_exceeded: "The key's budget has no room for another attempt.",
  overloaded: 'The gateway was out of memory.',
  internal_error: 'The gateway failed. Its log has the reason.',
  interrupted: 'The gateway restarted during the request.',
  ledger_unreachable: "The key's ledger could not be reached.",
  ledger_overloaded: "The key's ledger got more requests than it takes.",
  ledger_unreadable: 'The ledger of the key cannot be read.',
};

/** The meaning of an error code of Weir's; undefined if it is not one of a failed request. */
export function errorWords(code: string): string | undefined {
  return ERRORS[code];
}

export interface Ending {
  readonly title: string;
  readonly words: string;
  /** The provider's finish reason, or the error code. */
  readonly code: string | null;
}

export function endingOf(record: UsageRecord): Ending {
  const { status, error_code, finish_reason, completion_tokens, first_token_ms } = record;
  const after = first_token_ms === null ? 'before any output' : `after ${count(completion_tokens, 'token')}`;
  if (record.ended_by === 'budget')
    return {
      title: `Ended by the budget ${after}`,
      words: "The key's budget was used up, which ended the answer like a reached limit.",
      code: null,
    };
  if (status === 'finished')
    return {
      title: 'Finished',
      words: FINISHES[finishReason(finish_reason ?? '')],
      code: finish_reason,
    };
  if (status === 'cancelled')
    return {
      title: `Cancelled ${after}`,
      words: 'The client disconnected, and the upstream request was cancelled.',
      code: null,
    };
  const failed = first_token_ms === null ? 'Failed' : 'Truncated';
  return {
    title: `${status === 'timed_out' ? 'Timed out' : failed} ${after}`,
    words: ERRORS[error_code ?? ''] ?? ERRORS[record.error ?? ''] ?? "The provider's own code says why.",
    code: error_code,
  };
}
