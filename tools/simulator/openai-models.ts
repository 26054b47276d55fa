/**
 * The models of the simulated OpenAI, their answers and token counts.
 *
 * Tokens (completion, for each choice): gpt-4o-mini 13, o4-mini 5 shown and 32 hidden reasoning tokens, so 37;
 * gpt-3.5-turbo-instruct 7. The models with an `api` have 24 hidden tokens while they reason, and 5 of summary where it is requested.
 */
import { type JsonObject, numberOf, objectOf } from './json.ts';
import type { Call } from './scene.ts';
import { costOf, type Piece, type Script, scriptFor, wordsOf } from './script.ts';

export interface Model {
  readonly dated: string;
  readonly legacy: boolean;
  readonly hidden: number;
  readonly pieces: readonly Piece[];
  /** What the two APIs accept of a newer model; absent: both accept what OpenAI's older models do. */
  readonly api?: ModelApi;
}

export interface ModelApi {
  /** The efforts with which chat accepts function tools; null: the model is served by Responses alone. */
  readonly toolsOnChat: readonly string[] | null;
  readonly chatEfforts: readonly string[];
  readonly efforts: readonly string[];
}

const UP_TO_XHIGH = ['low', 'medium', 'high', 'xhigh'];

const SUMMARY = wordsOf('reasoning', 'The river first, then words.');

function newer(name: string, text: string, api: ModelApi): Model {
  return { dated: name, legacy: false, hidden: 24, pieces: [...SUMMARY, ...wordsOf('text', text)], api };
}

export const MODELS: Readonly<Record<string, Model>> = {
  'gpt-4o-mini': {
    dated: 'gpt-4o-mini-2024-07-18',
    legacy: false,
    hidden: 0,
    pieces: wordsOf('text', 'Water over the crest, “unhurried”, and every drop of it counted — naïvely.'),
  },
  'o4-mini': {
    dated: 'o4-mini-2025-04-16',
    legacy: false,
    hidden: 32,
    pieces: wordsOf('text', 'After some thought: forty-two. ✓'),
  },
  'gpt-3.5-turbo-instruct': {
    dated: 'gpt-3.5-turbo-instruct:20230824-v2',
    legacy: true,
    hidden: 0,
    pieces: wordsOf('text', '\n\nBelow the weir the water runs white'),
  },
  // Chat: tools with `none` alone (BerriAI/litellm#34569, 2026-07-24), no `max`; measured 2026-08-30.
  'gpt-5.6': newer('gpt-5.6', 'A step of stone that the whole river reads.', {
    toolsOnChat: ['none'],
    chatEfforts: ['none', ...UP_TO_XHIGH],
    efforts: ['none', ...UP_TO_XHIGH, 'max'],
  }),
  // "Tool calls need Responses", efforts from `none` to `max`: its page, read 2026-11-22.
  'gpt-6.1-terra': newer('gpt-6.1-terra', 'Stone, water, patience: in that order.', {
    toolsOnChat: [],
    chatEfforts: ['none', ...UP_TO_XHIGH],
    efforts: ['none', ...UP_TO_XHIGH, 'max'],
  }),
  // Its refusals are found in no thread: gpt-6-astra's are played (firebase/genkit#6303, 2026-09-08).
  'gpt-6.2-astra': newer('gpt-6.2-astra', 'It lets the river think it chose the way.', {
    toolsOnChat: [],
    chatEfforts: UP_TO_XHIGH,
    efforts: [...UP_TO_XHIGH, 'max'],
  }),
  // No real models: they are released tomorrow, as the newest of their kinds.
  'gpt-7-sol': newer('gpt-7-sol', 'Seven gates, and one keeper.', {
    toolsOnChat: [],
    chatEfforts: UP_TO_XHIGH,
    efforts: [...UP_TO_XHIGH, 'max'],
  }),
  o5: newer('o5', 'It thinks, then it flows.', {
    toolsOnChat: [],
    chatEfforts: ['low', 'medium', 'high'],
    efforts: ['low', 'medium', 'high'],
  }),
  // A name that no table knows.
  'gpt-9-test': newer('gpt-9-test', 'The river already knew.', {
    toolsOnChat: null,
    chatEfforts: UP_TO_XHIGH,
    efforts: [...UP_TO_XHIGH, 'max'],
  }),
};

/** By its name or by the dated one, which OpenAI takes, too. */
export function findModel(name: string): Model | undefined {
  return MODELS[name] ?? Object.values(MODELS).find(({ dated }) => dated === name);
}

export function modelOf(call: Call): Model {
  return findModel(call.model) ?? { dated: call.model, legacy: false, hidden: 0, pieces: [] };
}

/** Chat shows no reasoning. */
export function scriptsOf(call: Call): Script[] {
  const pieces = modelOf(call).pieces.filter(({ kind }) => kind !== 'reasoning');
  return Array.from({ length: numberOf(call.body.n) ?? 1 }, () => scriptFor(call, pieces));
}

/** The hidden tokens of reasoning. */
export function hiddenOf(call: Call): number {
  const effort = call.body.reasoning_effort ?? objectOf(call.body.reasoning).effort;
  return effort === 'none' ? 0 : modelOf(call).hidden;
}

export function usage(call: Call, scripts: readonly Script[]): JsonObject {
  const cost = costOf(call, scripts, hiddenOf(call) * scripts.length);
  const none = { audio_tokens: 0 };
  const predictions = { accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 };
  return {
    prompt_tokens: cost.prompt,
    completion_tokens: cost.completion,
    total_tokens: cost.total,
    prompt_tokens_details: { cached_tokens: cost.cached, ...none },
    completion_tokens_details: { reasoning_tokens: cost.reasoning, ...none, ...predictions },
  };
}
