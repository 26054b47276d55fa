/** Collects what of a request was left out or changed, by name, so that the caller can be informed (Q5, Q8). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { ReportedFields, reportedField } from '../canonical/reported-fields.ts';
import { isObject, type JsonObject, ownValue } from '../shared/json.ts';
import { hasItems, type Unsupported } from './rules.ts';

export class TranslationReport {
  readonly #provider: string;
  readonly #mode: Unsupported;
  readonly #dropped = new ReportedFields();
  readonly #changed = new ReportedFields();
  #error: ApiError | null = null;

  /** @param provider its name in messages */
  constructor(provider: string, mode: Unsupported) {
    this.#provider = provider;
    this.#mode = mode;
  }

  get mode(): Unsupported {
    return this.#mode;
  }

  get dropped(): readonly string[] {
    return this.#dropped.list;
  }

  get changed(): readonly string[] {
    return this.#changed.list;
  }

  /** The first reason for which the request is not sent, or null. */
  get error(): ApiError | null {
    return this.#error;
  }

  /** A field about the request, which the provider refuses, was left out (Q5). */
  drop(field: string): void {
    const name = reportedField(field);
    if (this.#mode === 'refuse') this.fail(name, `${this.#provider} does not take ${name}: leave it out`);
    this.#dropped.add(name);
  }

  /** A field that would change the answer was left out, because the caller allows it (Q8). */
  dropAllowed(name: string): void {
    this.#dropped.add(name);
  }

  /** Something that would change the answer and that the provider has no form for: it is left out only where the caller allows it (Q6, Q8). */
  refuse(field: string): void {
    const name = reportedField(field);
    if (this.#mode === 'drop') return this.dropAllowed(name);
    this.fail(
      name,
      `${this.#provider} has nothing like ${name}: leave it out, or send the header x-weir-unsupported: drop`,
    );
  }

  change(name: string): void {
    this.#changed.add(name);
  }

  fail(param: string, message: string): void {
    this.#error ??= apiError('unsupported_parameter', message, param);
  }
}

/** A field's value that is the same as leaving the field out. https://platform.openai.com/docs/api-reference/chat (2026-11-21) */
const DEFAULTS: Readonly<Record<string, (value: unknown, body: JsonObject) => boolean>> = {
  n: (value) => value === 1,
  best_of: (value) => value === 1,
  temperature: (value) => value === 1,
  top_p: (value) => value === 1,
  echo: (value) => value === false,
  presence_penalty: (value) => value === 0,
  frequency_penalty: (value) => value === 0,
  logprobs: (value) => value === false,
  top_logprobs: (value) => value === 0,
  logit_bias: (value) => isObject(value) && Object.keys(value).length === 0,
  store: (value) => value === false,
  // Without tools there is nothing to choose from.
  tool_choice: (value, body) => value === 'auto' || (value === 'none' && !hasItems(body.tools)),
  parallel_tool_calls: (value, body) => value === true || !hasItems(body.tools),
  response_format: (value) => isObject(value) && value.type === 'text',
  modalities: (value) => Array.isArray(value) && value.length === 1 && value[0] === 'text',
  service_tier: (value) => value === 'auto',
  stop: (value) => Array.isArray(value) && value.length === 0,
  functions: (value) => Array.isArray(value) && value.length === 0,
  function_call: (value) => value === 'auto',
};

const ABOUT_REQUEST: ReadonlySet<string> = new Set([
  'user',
  'metadata',
  'store',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'service_tier',
  'verbosity',
  'cache_control',
]);

/** Clients send these without being asked: where a model refuses them, they are left out and told, as at Claude. */
const SAMPLING: ReadonlySet<string> = new Set(['temperature', 'top_p', 'top_k']);

/** What an answer carried and a client sends back with it: leaving it out of a message loses nothing. */
const FROM_ANSWERS: ReadonlySet<string> = new Set([
  'refusal',
  'annotations',
  'parsed',
  'parsed_arguments',
  'audio',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'thinking_blocks',
  'extra_content',
  'provider_specific_fields',
  'function_call',
  'tool_calls',
  'index',
]);

export function isDefault(field: string, value: unknown, body: JsonObject): boolean {
  return ownValue(DEFAULTS, field)?.(value, body) ?? false;
}

export function isAboutRequest(field: string): boolean {
  return ABOUT_REQUEST.has(field);
}

export function isSampling(field: string): boolean {
  return SAMPLING.has(field);
}

/** Whether a key of a message may be left out without a report. */
export function isFromAnswer(key: string): boolean {
  return FROM_ANSWERS.has(key);
}
