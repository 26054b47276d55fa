/**
 * What each field of Weir's own API means: the descriptions of `docs/openapi.json`, and the tables of `docs/api.md`. A
 * field without a text does not compile. `docs/<page>.md#<anchor>` becomes a link. After a change: npm run openapi.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RecordView } from '../../src/api/record-view.ts';
import type { Sums } from '../../src/metering/report.ts';
import { between, commentedRows } from '../tables/commented.ts';

type Texts<Name extends string> = Readonly<Record<Name, string>>;

export const RECORD_TEXTS: Texts<Extract<keyof RecordView, string>> = {
  request_id: 'the id of the request, a UUIDv7, as in x-request-id',
  time: 'its arrival, UTC',
  ended: 'its end, UTC',
  key_id:
    "the gateway key's id; host_… for callers of a host Worker (docs/embedding.md#onrequest); a hash under AUTH=passthrough; access_… under AUTH=access; open",
  asked: 'the model as the client named it, at most 144 bytes',
  provider: 'of the target that served the request, or was tried last',
  model: 'of this target, at most 208 bytes',
  route: 'chat, completions, fim, agents or embeddings; Messages, Responses and Gemini are chat',
  client: 'the client protocol; chat also of embeddings',
  status: 'how the request ended: docs/metering.md#usage-records',
  error_code: 'the code that the client received',
  error: "Weir's code of it, such as rate_limited for Mistral's 4290",
  fault: 'whose fault the error is: docs/errors.md#what-the-record-keeps',
  finish_reason: "the provider's own word",
  team: 'the id of the team of the key (docs/budgets.md#teams); absent: it had none',
  ended_by: 'budget: a running budget ended the output (docs/budgets.md#running-budgets); otherwise absent',
  prompt_tokens: 'the sum of all attempts, as are the other tokens',
  completion_tokens: 'tokens of the output',
  total_tokens: 'tokens of prompt and output',
  cached_tokens: 'part of the prompt, read from a cache; null: not reported',
  cache_write_tokens: 'part of the prompt, written to a cache; null: not reported',
  cache_write_long_tokens:
    'part of the prompt, written to a cache that keeps it for longer (docs/prices.md#rates); only if there were any',
  searches: 'web searches that the provider ran; only if there were any',
  reasoning_tokens:
    'part of the completion, also where the provider counts it apart (xAI); null: not reported',
  vendor_events: 'events x_* of the provider',
  vendor_tokens: 'tokens that these events report',
  first_token_ms: 'from the arrival to the first text; null: none',
  total_ms: 'from the arrival to the end',
  bytes_out: 'bytes sent to the client',
  estimated: 'whether tokens are an estimate: docs/metering.md#estimates',
  cost: 'null: no price is known, which does not mean free',
  cost_parts:
    'of the cost: input (cache writes included), cached (read from the cache) and output. The rest is for searches, or one sum that the provider reported. Absent: nothing is divided',
  currency: 'of the cost',
  cost_source: 'upstream (reported by the provider), table (a price) or none',
  price_since: 'the start of the price',
  cost_estimated:
    'whether the cost depends on estimated tokens, is an upper bound, or reported counts contradict each other',
  user: 'who sent the request: docs/attribution.md',
  session: 'of which session it is',
  app: 'which program sent it',
  tags: 'for what it was sent',
  attempts:
    'at most 64 targets in order, each with status, error code, ms (null: skipped) and message, what the provider said (docs/errors.md#what-the-record-keeps); api if sent through Responses; run_id where the provider has one; for the admin cause: an address and the reason, or the words that changed the request (docs/refusals.md)',
  dropped:
    "at most 64 fields that the provider's request lacks: docs/request-translation.md#what-happens-to-a-field",
  changed: 'at most 64 fields that it has with another meaning; also reasoning that OpenAI removed',
  cache: 'why the prompt was not read from the cache: docs/prompt-caches.md#read-a-break',
};

export const SUMS_TEXTS: Texts<Extract<keyof Sums, string>> = {
  requests: 'counted at the time of arrival',
  prompt_tokens: "the sum of the records' field, as are the other tokens",
  completion_tokens: 'tokens of outputs',
  total_tokens: 'tokens of prompts and outputs',
  cached_tokens: 'part of the prompts',
  cache_write_tokens: 'part of the prompts',
  reasoning_tokens: 'part of the outputs',
  estimated_requests: 'requests with estimated tokens',
  failed_requests: 'failed or timed out',
  cut_requests: 'part of these: after the first token',
  cancelled_requests: 'not part of failed_requests',
  unpriced_requests: 'used tokens for which no price is known',
  cached_share: 'cached_tokens / prompt_tokens',
  median_first_token_ms:
    'right to about a tenth over many requests, to a fifth for one, as the other five; null: nothing was measured',
  median_tokens_per_second: 'of the output',
  p95_first_token_ms: '95 % of the requests were at least as fast',
  p99_first_token_ms: '99 % of the requests were at least as fast',
  p5_tokens_per_second: '95 % of the requests were at least as fast',
  p1_tokens_per_second: '99 % of the requests were at least as fast',
  cost: '{"USD": 0.000128}, one sum for each currency; {} where nothing had a price',
  estimated_cost: 'the part of cost that depends on estimated tokens or is an upper bound',
  cost_parts:
    'the part of cost for input, cached and output, each by currency, as in records. Absent: nothing is divided',
  lost_tokens: 'lost to breaks of the prompt cache: docs/prompt-caches.md#reports',
  lost_cost: 'what these cost, by currency',
};

const LIMIT = 'a limit: docs/budgets.md#set-a-budget-and-other-limits';

/** The comments of the rows of a table. */
export function commentsIn(path: string, table: string): Readonly<Record<string, string>> {
  const source = readFileSync(join(import.meta.dirname, '../../src', path), 'utf8');
  const rows = commentedRows(between(source, `const ${table} = {`, '\n};'), /^ {2}(\w+): /gm);
  return Object.fromEntries(rows.flatMap(({ names, text }) => names.map((name) => [name, text])));
}

const { disabled = '', ...ownTexts } = commentsIn('api/bodies.ts', 'KEY_BODY');

export const KEY_TEXTS: Readonly<Record<string, string>> = {
  ...ownTexts,
  team: 'the id of its team: docs/budgets.md#teams',
  ...commentsIn('auth/key-facts.ts', 'KEY_FACTS'),
  disabled,
  budget: 'an amount in one unit for a period, or up to four: docs/budgets.md#set-a-budget-and-other-limits',
  rpm: LIMIT,
  tpm: LIMIT,
  max_concurrent: LIMIT,
  max_output_tokens: LIMIT,
  per_user: 'limits of each user: docs/budgets.md#limits-for-each-user',
};

export const BUDGET_TEXTS = {
  unit: 'a currency, or tokens',
  period: 'the current one, such as 2026-11',
  limit: 'with what was added',
  added: 'part of limit: added for this period alone (docs/budgets.md#add-to-a-budget)',
  spent: 'charged in this period',
  reserved: 'held for running requests; always 0 with "mode":"warn"',
  remaining: 'limit - spent - reserved',
  estimated: 'part of spent: reservations that nothing settled (docs/budgets.md#requests-that-never-settle)',
  unreported:
    'part of spent: charged at its bound, as the provider did not report it (docs/budgets.md#what-is-charged)',
  resets_at: 'when the next period starts; null for total',
} as const;

export const MODEL_TEXTS = {
  id: 'the name',
  object: 'for OpenAI’s SDKs',
  created: 'for OpenAI’s SDKs',
  owned_by: 'the provider',
  type: 'for Anthropic’s SDKs',
  display_name: 'for Anthropic’s SDKs',
  created_at: 'for Anthropic’s SDKs',
  context_length: 'the limit in tokens',
  max_output_tokens: 'the limit in tokens',
  max_input_tokens: 'context_length under the name that Claude Code reads',
  max_tokens: 'max_output_tokens under the name that Claude Code reads',
  supports: 'tools, reasoning, images, structured_output: true or false',
  apis: 'with details=true, the APIs that serve it: chat, responses, messages, generate_content, embeddings',
  pricing: 'with details=true, the price in force, per million tokens',
  facts_source:
    'with details=true, the page of facts that Weir ships; what the provider’s own list has precedes them',
  facts_checked: 'with details=true, the day of their check',
} as const;

export const STATUS_TEXTS = {
  object: 'status',
  time: 'of the response',
  version: 'of Weir',
  commit: 'of the deployed version',
  version_id: 'of the deployed version; null without the binding CF_VERSION_METADATA',
  uploaded_at: 'of the deployed version; null without the binding CF_VERSION_METADATA',
  features: 'their names',
  settings:
    'setting, value (null for secrets, lists and objects; a URL without credentials and query; the host of ALERT_URL), and source: environment, option, secrets_store or default',
  providers:
    'id, is_set_up, credential (present, absent, unreadable in Secrets Store, or caller under AUTH=passthrough), setting of the key, base_url, and last_hour: calls, failures, first-token times and models. retry_rate is the part of the calls that were followed by another attempt. A provider’s 400, 404, 413 or 422 is no failure',
  aliases: 'name and targets, with the price in force',
  errors:
    'the last error of each provider and fault (docs/errors.md#e6) within a day, also of a call that another target made good',
  in_flight:
    'requests whose provider has not ended, in the isolate that answered (scope), without background responses',
  circuits:
    'open: those of the isolate that answered (scope), with key_id (null: open for all keys) and open_until',
  ledger:
    'waiting_records (dead letters, up to 1,000), has_archive, full_keys (up to 20 whose object is full, docs/ledgers.md#records-leave-an-object, and within 30 days deleted records or could not archive them: key_id, deleted_records, deleted_before, archive_failing_since, reason), newest_record, lag_ms (for how long the newest record of this isolate has not been visible; null: none in the last hour), lost_by_this_isolate, sampled_records, problem (why the ledger could not be read)',
} as const;
