/** What a request asks for, by name: `model`, then the body's `models`, as OpenRouter's clients send them (R1). */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { Route } from '../providers/provider.ts';
import { type JsonObject, readText } from '../shared/json.ts';
import { MAX_TARGETS } from '../shared/limits.ts';

/** Longer names are no model's: they would only swell headers and records. */
const MAX_MODEL_CHARS = 256;

/** At least one. */
export type RequestedModels = readonly [string, ...string[]];

export type RequestedModelsResult =
  | { readonly kind: 'names'; readonly names: RequestedModels }
  | { readonly kind: 'error'; readonly error: ApiError };

/** The names that a request may go by, each once; on the agents' route that of its agent alone (R12). */
export function readRequestedModels(body: JsonObject, route: Route): RequestedModelsResult {
  if (route === 'agents') {
    return isName(body.agent_id)
      ? { kind: 'names', names: [body.agent_id] }
      : invalid('agent_id', 'agent_id must name the agent');
  }
  const { model, models } = body;
  if (isAbsent(models) && isName(model)) return { kind: 'names', names: [model] };
  const others = models ?? [];
  if (!Array.isArray(others) || !others.every(isName)) {
    return invalid('models', 'models must be a list of names, to be tried in order');
  }
  const [first, ...rest] = new Set(isAbsent(model) ? others : [model, ...others]);
  if (!isName(first) || (!isAbsent(model) && !isName(model))) {
    return invalid(
      'model',
      'model must be a name such as "deepseek/deepseek-flash" (GET /v1/models lists them)',
    );
  }
  const names = [first, ...rest.filter(isName)] as const;
  if (names.length > MAX_TARGETS)
    return invalid('models', `models and model may name ${MAX_TARGETS} at most`);
  return { kind: 'names', names };
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function isName(value: unknown): value is string {
  const text = readText(value);
  return text !== undefined && text.length <= MAX_MODEL_CHARS && !hasControl(text);
}

/** Whether the text holds one of Unicode's control characters. */
function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return true;
  }
  return false;
}

function invalid(param: string, message: string): RequestedModelsResult {
  return { kind: 'error', error: apiError('invalid_request', message, param) };
}
