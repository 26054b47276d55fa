/** Reads the names of the models that a request accepts: `model`, then `models`, as OpenRouter's clients send them (R1). */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { Route } from '../providers/provider.ts';
import { type JsonObject, readText } from '../shared/json.ts';
import { MAX_TARGETS } from '../shared/limits.ts';
import { failure, ok, type Result } from '../shared/result.ts';

/** No model has a longer name. Names appear in headers and records, so their size is bounded. */
const MAX_MODEL_CHARS = 256;

/** At least one. */
export type RequestedModels = readonly [string, ...string[]];

/** The names without duplicates, in the order to try them. On the agents' route it is the agent's id (R12). */
export function readRequestedModels(body: JsonObject, route: Route): Result<RequestedModels, ApiError> {
  if (route === 'agents') {
    return isName(body.agent_id) ? ok([body.agent_id]) : invalid('agent_id', 'agent_id must name the agent');
  }
  const { model, models } = body;
  if (isAbsent(models) && isName(model)) return ok([model]);
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
  return ok(names);
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

function invalid(param: string, message: string): Result<never, ApiError> {
  return failure(apiError('invalid_request', message, param));
}
