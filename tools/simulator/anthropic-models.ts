/** The simulator's Claude models, one for each kind of model family, and their thinking signatures. */
import { createHash } from 'node:crypto';
import { blocksOf } from './anthropic-chat.ts';
import { compact, type Json, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import { type Piece, wordsOf } from './script.ts';

export interface ClaudeModel {
  readonly answer: readonly Piece[];
  readonly thinking: readonly ('enabled' | 'adaptive' | 'disabled')[];
  readonly thinksUnasked: boolean;
  /** Its thinking is hidden unless `display` requests it. */
  readonly hides: boolean;
  readonly takesSampling: boolean;
  readonly takesForcedTools: boolean;
  readonly takesPrefill: boolean;
  /** Its signatures are valid only after the unchanged conversation. */
  readonly binds: boolean;
}

const THOUGHT = wordsOf('reasoning', 'Gates first, then the gauge.');
const OLD: ClaudeModel = {
  answer: [...THOUGHT, ...wordsOf('text', 'It keeps the upper reach deep — and calm.')],
  thinking: ['enabled', 'disabled'],
  thinksUnasked: false,
  hides: false,
  takesSampling: true,
  takesForcedTools: true,
  takesPrefill: true,
  binds: false,
};
const NEW: ClaudeModel = {
  ...OLD,
  thinking: ['adaptive', 'disabled'],
  thinksUnasked: true,
  hides: true,
  takesSampling: false,
  takesPrefill: false,
};

export const CLAUDE_MODELS: Readonly<Record<string, ClaudeModel>> = {
  'claude-haiku-4-5': OLD,
  'claude-sonnet-5': NEW,
  'claude-opus-5-5': { ...NEW, thinking: ['adaptive'], takesForcedTools: false, binds: true },
  // Other providers' models at their Messages endpoints: farion1231/cc-switch#6737 (2026-08-23), MoonshotAI/Kimi-K2#141 (2026-06-22).
  'glm-5.3': { ...OLD, thinking: ['adaptive', 'enabled'], thinksUnasked: true },
  'kimi-k2.7-code': { ...OLD, thinking: ['enabled'], thinksUnasked: true },
};

/** Whether the model thinks for this request, and whether the thinking is shown. */
export function thoughtsOf({ thinking }: JsonObject, model: ClaudeModel): 'none' | 'hidden' | 'shown' {
  const { type, display } = objectOf(thinking);
  const isThinking = type === undefined ? model.thinksUnasked : type !== 'disabled';
  if (!isThinking) return 'none';
  return (display ?? (model.hides ? 'omitted' : 'summarized')) === 'omitted' ? 'hidden' : 'shown';
}

/** Covers the shown text, and for a binding model also all turns before that index. */
export function signatureOf({ body, model }: SignedRequest, text: string, turn: number): string {
  const isBound = CLAUDE_MODELS[model]?.binds === true;
  const messages = objectsOf(body.messages).slice(0, turn).map(asBlocks);
  const before = isBound ? [blocksOf(body.system), body.tools, messages] : [];
  const hash = createHash('sha256').update(`${compact(before.map(withoutMarks))}\n${text}`);
  return `${model}.${hash.digest('base64')}`;
}

/** The parts of a request that signatures depend on. */
export interface SignedRequest {
  readonly model: string;
  readonly body: JsonObject;
}

/** A text is short for one text block (MessageCreateParams of @anthropic-ai/sdk 1.12.0). Claude Code 2.1.330 sends both. */
function asBlocks({ content, ...message }: JsonObject): JsonObject {
  return { ...message, content: blocksOf(content) };
}

/** Cache markers are not part of the conversation. */
function withoutMarks(value: Json | undefined): Json {
  if (Array.isArray(value)) return value.map(withoutMarks);
  if (typeof value !== 'object' || value === null) return value ?? null;
  const kept = Object.entries(value).filter(([key]) => key !== 'cache_control');
  return Object.fromEntries(kept.map(([key, member]) => [key, withoutMarks(member)]));
}

/**
 * The path of the first changed thinking block, such as `messages.1.content.0`; undefined if none was changed. Blocks of another model are
 * dropped without an error: https://platform.claude.com/docs/build-with-claude/preserved-thinking (2026-11-22).
 */
export function changedThinking(request: SignedRequest): string | undefined {
  for (const [turn, message] of objectsOf(request.body.messages).entries()) {
    for (const [at, block] of blocksOf(message.content).entries()) {
      const isRedacted = block.type === 'redacted_thinking';
      if (block.type !== 'thinking' && !isRedacted) continue;
      const token = textOf(isRedacted ? block.data : block.signature);
      const maker = token.slice(0, token.indexOf('.'));
      // Signatures are valid on every platform: build-with-claude/extended-thinking, 2026-11-22.
      if (maker !== request.model && (maker in CLAUDE_MODELS || maker === 'openrouter')) continue;
      const text = isRedacted ? 'redacted' : textOf(block.thinking);
      if (token !== signatureOf(request, text, turn)) return `messages.${turn}.content.${at}`;
    }
  }
  return undefined;
}
