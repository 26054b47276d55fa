/**
 * OpenTelemetry's names for calls to generative models: all that Weir's spans use of them (W4). They are in development and change:
 * https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md, schema gen-ai/1.42.0, read
 * 2026-11-22.
 */
import type { Route } from '../providers/provider.ts';

export const OPERATION = 'gen_ai.operation.name';
export const PROVIDER = 'gen_ai.provider.name';
export const REQUEST_MODEL = 'gen_ai.request.model';
export const REQUEST_STREAM = 'gen_ai.request.stream';
export const RESPONSE_MODEL = 'gen_ai.response.model';
export const FINISH_REASONS = 'gen_ai.response.finish_reasons';
/** In seconds. */
export const FIRST_CHUNK = 'gen_ai.response.time_to_first_chunk';
export const INPUT_TOKENS = 'gen_ai.usage.input_tokens';
export const CACHED_TOKENS = 'gen_ai.usage.cache_read.input_tokens';
export const OUTPUT_TOKENS = 'gen_ai.usage.output_tokens';
export const REASONING_TOKENS = 'gen_ai.usage.reasoning.output_tokens';
export const ERROR_TYPE = 'error.type';
/** Stable: https://opentelemetry.io/docs/specs/semconv/http/http-spans/, read 2026-11-22. */
export const HTTP_STATUS = 'http.response.status_code';

/** The conventions know no cost, and nothing of gateways. */
export const REQUEST_ID = 'weir.request_id';
export const KEY_ID = 'weir.key_id';
export const STATUS = 'weir.status';
export const ATTEMPTS = 'weir.attempts';
export const ESTIMATED = 'weir.estimated';
export const COST = 'weir.cost';
export const CURRENCY = 'weir.currency';

/** The values of `gen_ai.operation.name`. */
const OPERATIONS: Readonly<Record<Route, string>> = {
  chat: 'chat',
  completions: 'text_completion',
  fim: 'text_completion',
  agents: 'invoke_agent',
};

/** The values of `gen_ai.provider.name`, where they are not Weir's own ids. */
const PROVIDERS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    codestral: 'mistral_ai',
    gemini: 'gcp.gemini',
    mistral: 'mistral_ai',
    moonshot: 'moonshot_ai',
    xai: 'x_ai',
  }),
);

export function operationOf(route: Route): string {
  return OPERATIONS[route];
}

/** @param ids the provider's own, and those of whom its host is known to be */
export function providerName(ids: readonly string[]): string {
  const known = ids.find((id) => PROVIDERS.has(id)) ?? '';
  return PROVIDERS.get(known) ?? ids[0] ?? '';
}
