/** The forms in which providers accept requests, and what writing one depends on. */

import type { NativeRequest } from '../canonical/conversation.ts';
import { isObject, type JsonObject, keepEntries } from '../shared/json.ts';
import { isEmptySetting, type TranslationReport } from './dropped-fields.ts';
import type { MessageTarget } from './messages.ts';
import type { PromptCache, RequestRules, Unsupported } from './rules.ts';

/** In which form a provider accepts requests: Chat Completions with the differences of a table, or the provider's native API. */
export type RequestForm =
  | { readonly kind: 'chat'; readonly rules: RequestRules }
  | {
      readonly kind: 'native';
      /** What is done to the fields before they are read; absent: nothing. */
      readonly rules?: RequestRules;
      /** The fields that `write` writes from the settings. All others are its `extra`. */
      readonly fromSettings: readonly string[];
      /** Writes the native body. It is not sent if the report has an error. */
      readonly write: (
        request: NativeRequest,
        options: WriteOptions,
        report: TranslationReport,
      ) => JsonObject;
      /** The tool names that the provider accepts; absent: all. */
      readonly toolNames?: RegExp;
      /** What the provider takes as tools; absent: everything. */
      readonly tools?: ToolRules;
      /** Where a native body has its output limit; null: it has none. */
      readonly limit: LimitPlace | null;
      /** It has `guardrailConfig`; absent: false. */
      readonly takesGuardrails?: true;
      /** The writer asks for citations of documents, or reports each that it drops; absent: false, all are dropped. */
      readonly takesCitations?: true;
      /** The provider's prompt cache uses a key that {@link WriteOptions} has; absent: false. */
      readonly takesPromptCacheKey?: boolean;
    };

/** The provider refuses two tools with one name. */
export interface ToolRules {
  /** The schema of parameters is an object without combinators at its root. Absent: false. */
  readonly plainRoots?: true;
  /** The keys of parameters that it accepts. Others are replaced, and restored in the response. Absent: all. */
  readonly keys?: RegExp;
}

/** Where a written body has its output limit. */
export interface LimitPlace {
  /** With dots. */
  readonly path: string;
  /** The name that clients know; absent: the path. */
  readonly name?: string;
  /** Fields that could take precedence over it, with dots for nested ones: they go where a key limits the output. */
  readonly competing: readonly string[];
}

/** What a translation depends on, besides the body. */
export interface WriteOptions extends MessageTarget {
  /** The provider's name, for messages. */
  readonly provider: string;
  readonly promptCache: PromptCache;
  /** The same text for all requests of a session, of which it is a hash. Absent: no session is known, or the form does not take it. */
  readonly promptCacheKey?: string;
  readonly unsupported: Unsupported;
  /** The client's names of fields, by those of Chat Completions, for messages and reports. Absent: they are the same. */
  readonly fieldNames?: Readonly<Record<string, string>>;
  /** Fields that are left out where the provider does not support them, although they change the output. Absent: none. */
  readonly optionalFields?: readonly string[];
  /** The client gets no reasoning, so the request tells the provider to omit its text if possible. Absent: false. */
  readonly hidesReasoning?: boolean;
}

/** A null at the top level means the same as no field. */
export function withoutNulls(body: JsonObject): JsonObject {
  return keepEntries(body, (_, value) => value !== null);
}

/** Without settings that say nothing, and that strict providers refuse. */
export function withoutEmptySettings(body: JsonObject): JsonObject {
  return keepEntries(body, (field, value) => !isEmptySetting(field, value, body));
}

/** Whether the client requests the cost of the response, with OpenRouter's `usage: {"include": true}`. */
export function requestsCost({ usage }: JsonObject): boolean {
  return isUsageInclude(usage) && usage.include;
}

/** OpenRouter's `usage` of a request. */
export function isUsageInclude(usage: unknown): usage is { readonly include: boolean } {
  return isObject(usage) && typeof usage.include === 'boolean';
}
