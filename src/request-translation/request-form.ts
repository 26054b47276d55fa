/** The form in which a provider takes requests, and the writing of one: each route's request is in OpenAI's form until here. */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { JsonObject } from '../shared/json.ts';
import { MAX_TOOL_NAMES_CHARS } from '../shared/limits.ts';
import { type LimitedBody, outputLimitName, readOutputLimit, withLimitAlone } from './output-limit.ts';
import type { RequestRules } from './rules.ts';
import { charsOfNames, type ToolNames, withShortToolNames } from './tool-names.ts';
import { type TranslatedRequest, type TranslateOptions, translateRequest } from './translate.ts';

/** What a request is written for. */
export type WriteOptions = Omit<TranslateOptions, 'rules'>;

/** OpenAI's form, but for the provider's rules, or a form of its own. */
export type RequestForm =
  | { readonly kind: 'chat'; readonly rules: RequestRules }
  | {
      readonly kind: 'native';
      /** The body that means the same as one in OpenAI's form. */
      readonly write: (body: JsonObject, options: WriteOptions) => TranslatedRequest;
      /** The form of tools' names; absent: any. */
      readonly toolNames?: RegExp;
      /** The most tokens that an answer to a body so written can have (G2), or null where it has no limit. */
      readonly outputLimit: (body: JsonObject) => number | null;
      /** A body so written with that limit and no rival of it. */
      readonly withLimit: (body: JsonObject, tokens: number) => LimitedBody;
      /** The name of that limit; absent: `max_tokens`. */
      readonly limitName?: string;
    };

/** Without names, each stands for itself. */
type Written = TranslatedRequest & { readonly toolNames?: ToolNames };

/** The body as the provider takes it, and what its tools' names stand for. The given body is not touched. */
export function writeRequest(form: RequestForm, given: JsonObject, options: WriteOptions): Written {
  const isNative = form.kind === 'native';
  const { body, names } = withShortToolNames(
    given,
    isNative ? form.toolNames : form.rules.messages.toolNames,
  );
  if (charsOfNames(names) > MAX_TOOL_NAMES_CHARS)
    return { kind: 'error', error: tooManyNames(options.provider) };
  const written = isNative
    ? form.write(body, options)
    : translateRequest(body, { rules: form.rules, ...options });
  return names.size === 0 ? written : { ...written, toolNames: names };
}

function tooManyNames(provider: string): ApiError {
  const message = `The names of tools that ${provider} does not take have more than ${MAX_TOOL_NAMES_CHARS} characters together: send fewer or shorter ones`;
  return apiError('invalid_request', message, 'tools');
}

/**
 * The limit of the answer's length in a body that was written so: null where there is none, undefined where it is no whole number
 * from 1 up.
 */
export function writtenLimit(form: RequestForm, body: JsonObject): number | null | undefined {
  return form.kind === 'native' ? form.outputLimit(body) : readOutputLimit(body);
}

/** What is sent, with an answer's length limited as its very last change: a limit of its own that is lower stays (G2). */
export function withWrittenLimit(form: RequestForm, body: JsonObject, atMost: number): LimitedBody {
  const tokens = Math.min(writtenLimit(form, body) ?? atMost, atMost);
  if (form.kind === 'native') return form.withLimit(body, tokens);
  return withLimitAlone(body, limitName(form), tokens, form.rules.rivalLimits ?? []);
}

/** The name under which the provider gets that limit. */
export function limitName(form: RequestForm): string {
  return form.kind === 'native' ? (form.limitName ?? 'max_tokens') : outputLimitName(form.rules);
}
