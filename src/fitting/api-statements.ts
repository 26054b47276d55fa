/** Refusals that ask for another API, or for a request without reasoning that the provider can't read (O5). */

import type { ChatApi } from '../canonical/conversation.ts';
import type { UpstreamRefusal } from '../canonical/refusal.ts';
import { type Claim, sentenceAt, spanOf, type TextSpan } from './refusal-words.ts';
import { hasUnlistedCondition } from './statements.ts';

/** What a refusal says about the request that was sent. */
export type SecondTry =
  /** The model, or the model with function tools, is served by this API alone. */
  | {
      readonly kind: 'api';
      readonly api: ChatApi;
      readonly scope: 'model' | 'tools';
      /** False: the refusal says so under a condition, so that later requests are tried as they are. */
      readonly isRemembered?: false;
    }
  /** The encrypted reasoning belongs to another organisation, or was altered. */
  | { readonly kind: 'without_reasoning' }
  /** The organisation or the model gets no summaries of reasoning. */
  | { readonly kind: 'without_summary' }
  /** The provider has the model below another path. */
  | { readonly kind: 'other_path' };

const TO_CHAT: SecondTry = { kind: 'api', api: 'chat', scope: 'model' };

/** What a refusal by one API asks for. */
interface ApiRefusal {
  readonly on: ChatApi;
  readonly action: SecondTry;
  readonly messages: readonly RegExp[];
  /** Stands for such a message. */
  readonly code?: string;
}

/** Refusals of 400, 404, 405 and 501. The first row with a match counts. Read 2026-11-22. */
const REFUSALS: readonly ApiRefusal[] = [
  {
    on: 'chat',
    action: { kind: 'api', api: 'responses', scope: 'tools' },
    messages: [
      // "Function tools with reasoning_effort are not supported for gpt-5.6-sol in /v1/chat/completions. To use function tools, use
      // /v1/responses or set reasoning_effort to 'none'." `none` is itself refused by gpt-6-astra and gpt-6.1-sol, so Responses it is:
      // pipecat-ai/pipecat#4043 (2026-03-16), joplin#16451 (2026-09-08); in Azure's, Bedrock's and Workers AI's envelopes, too.
      /\bfunction tools with reasoning_effort are not supported\b[\s\S]{0,256}\/v1\/responses\b/i,
    ],
  },
  {
    on: 'chat',
    action: { kind: 'api', api: 'responses', scope: 'model' },
    messages: [
      // "This model is only supported in v1/responses and not in v1/chat/completions.": openai/codex#1306 (2025-06-11).
      /\bonly supported in v1\/responses\b/i,
      // "This is not a chat model and thus not supported in the v1/chat/completions endpoint.": chatwise#1256 (2026-02-26).
      /\bnot a chat model\b[\s\S]{0,64}\bv1\/chat\/completions\b/i,
      // In other words: "Please use the /v1/responses endpoint", "only available through the Responses API", "not accessible via the
      // /chat/completions endpoint": farion1231/cc-switch#1681 (2026-03-25).
      /\b(?:use|try|call) (?:the )?(?:openai )?['"`]?(?:\/?v1\/|\/)?responses\b['"`]?(?: api| endpoint| instead)\b|\b(?:use|try|call) (?:the )?['"`]?\/?v1\/responses\b/i,
      /\bonly (?:available|supported|accessible|served|usable) (?:through|via|in|with|on|by|at|from) (?:the )?(?:openai )?['"`]?(?:\/?v1\/|\/)?responses\b/i,
      /\bmodel\b[^.\n]{0,120}\bnot (?:available|supported|accessible|served|usable) (?:through|via|in|with|on|by|at|from) (?:the )?['"`]?(?:\/?v1\/|\/)?chat[ /]completions\b/i,
      // Azure: "The chatCompletion operation does not work with the specified model, gpt-5.1-codex.": langchain-ai/langchain#35050
      // (2026-02-06).
      /\bchatCompletion operation does not work with the specified model\b/i,
      // xAI: "Multi Agent requests are not allowed on chat completions": chatwise#1306 (2026-03-18).
      /\bnot allowed on chat completions\b/i,
      // Bedrock: "The model 'openai.gpt-5.6-terra' does not support the '/v1/chat/completions' API": enricoros/big-AGI#1167 (2026-08-04).
      /\bmodel\b[\s\S]{0,256}\bdoes not support the '\/v1\/chat\/completions' API\b/i,
    ],
    // GitHub Copilot's, for both directions: cc-switch#1681 (2026-03-25).
    code: 'unsupported_api_for_model',
  },
  {
    on: 'responses',
    action: TO_CHAT,
    messages: [
      /\b(?:use|try|call) (?:the )?['"`]?(?:\/?v1\/|\/)?chat[ /]completions\b|\bonly (?:available|supported|accessible|served|usable) (?:through|via|in|with|on|by|at|from) (?:the )?['"`]?(?:\/?v1\/|\/)?chat[ /]completions\b/i,
      /\bmodel\b[^.\n]{0,120}\bnot (?:available|accessible|served|usable) (?:through|via|in|with|on|by|at|from) (?:the )?['"`]?(?:\/?v1\/|\/)?responses\b/i,
      /\bmodel\b[\s\S]{0,256}\bdoes not support the '\/v1\/responses' API\b/i,
      // "The requested model 'gpt-4o-search-preview' is not supported with the Responses API.": Laisky/one-api#88 (2025-06-22).
      /\bmodel\b[\s\S]{0,256}\bnot supported (?:with|via) (?:the )?Responses API\b/i,
      /\bmodel\b[\s\S]{0,256}\bdoes not support (?:the )?Responses API\b/i,
      // Hosts without the route: "Unknown URL /v1/responses", "Unsupported endpoint /openai/responses", "The endpoint /v1/responses is
      // not supported"; "Resource not found" (Azure), "File Not Found" (llama.cpp).
      /\b(?:unknown url|unsupported endpoint|endpoint)\b[\s\S]{0,64}\/responses\b/i,
      /^(?:resource|file) not found\b/i,
    ],
    code: 'unsupported_api_for_model',
  },
  {
    on: 'responses',
    action: { kind: 'without_reasoning' },
    messages: [
      // "The encrypted content gAAA...c90= could not be verified.": openai/codex#8119 (2025-12-16), pydantic/pydantic-ai#4608
      // (2026-03-09). xAI: "Could not decrypt the provided encrypted_content."
      /\bencrypted content\b[\s\S]{0,256}\bcould not be verified\b|\bcould not decrypt the provided encrypted_content\b/i,
    ],
    code: 'invalid_encrypted_content',
  },
  {
    on: 'responses',
    action: { kind: 'without_summary' },
    messages: [
      // "Your organization must be verified to generate reasoning summaries."; "Unsupported parameter: 'reasoning.summary' is not
      // supported with the 'gpt-5.3-codex-spark' model."
      /\bmust be verified to generate reasoning summaries\b|'reasoning\.summary' is not supported\b/i,
    ],
  },
];

/** Refusals of these statuses may ask for a change (Z1). */
export const CHANGING_STATUSES: ReadonlySet<number> = new Set([400, 404, 405, 422, 501]);
/** A host without the route may respond with one of these and no words. */
const MISSING_ROUTE = [404, 405, 501];

/** A change that a refusal asks for, and where its message says so; null: its code or its status does. */
export interface ApiStatement {
  readonly change: SecondTry;
  readonly claim: Claim | null;
}

/** What a refusal by this API asks for, or null if there is nothing that Weir can change. */
export function readApiStatement(
  { status, code, message }: UpstreamRefusal,
  on: ChatApi,
): ApiStatement | null {
  if (!CHANGING_STATUSES.has(status)) return null;
  if (message === undefined) {
    return on === 'responses' && MISSING_ROUTE.includes(status) ? { change: TO_CHAT, claim: null } : null;
  }
  for (const { action, messages, code: known } of REFUSALS.filter((row) => row.on === on)) {
    for (const pattern of messages) {
      const match = pattern.exec(message);
      if (match !== null) return statementOf(action, message, spanOf(match));
    }
    if (code === known) return { change: action, claim: null };
  }
  return null;
}

function statementOf(change: SecondTry, message: string, phrase: TextSpan): ApiStatement {
  const { from, to } = sentenceAt(message, phrase.from);
  const claim = { sentence: { from, to: Math.max(to, phrase.to) }, core: [phrase] };
  const isOpen = change.kind === 'api' && hasUnlistedCondition(message.slice(from, to));
  return { change: isOpen ? { ...change, isRemembered: false } : change, claim };
}
