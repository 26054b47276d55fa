/**
 * The models of the simulated OpenAI, their answers and token counts.
 *
 * Tokens (completion, for each choice): gpt-4o-mini 13, o4-mini 5 shown and 32 hidden reasoning tokens, so 37;
 * gpt-3.5-turbo-instruct 7.
 */
import { type JsonObject, numberOf } from './json.ts';
import type { Call } from './scene.ts';
import { costOf, type Piece, type Script, scriptFor, wordsOf } from './script.ts';

export interface Model {
  readonly dated: string;
  readonly legacy: boolean;
  readonly hidden: number;
  readonly pieces: readonly Piece[];
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
};

export function modelOf(call: Call): Model {
  return MODELS[call.model] ?? { dated: call.model, legacy: false, hidden: 0, pieces: [] };
}

export function scriptsOf(call: Call): Script[] {
  return Array.from({ length: numberOf(call.body.n) ?? 1 }, () => scriptFor(call, modelOf(call).pieces));
}

export function usage(call: Call, scripts: readonly Script[]): JsonObject {
  const cost = costOf(call, scripts, modelOf(call).hidden * scripts.length);
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
