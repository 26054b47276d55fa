/** The capabilities of a family of Gemini models, as the table in the provider's file states them, and the lookup by model. */
import { matchesModel } from '../../shared/model-name.ts';

/**
 * How a family's thinking is set.
 * - `none`: the model does not think, and refuses thinking settings.
 * - `budget`: in tokens between two bounds; 0 turns thinking off, where `canBeOff`.
 * - `level`: in words, the lowest first; the lowest is used for "no thinking".
 */
type Thinking =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'budget';
      readonly min: number;
      readonly max: number;
      readonly canBeOff: boolean;
      /** It thinks if the request does not set thinking. */
      readonly byDefault: boolean;
    }
  | { readonly kind: 'level'; readonly levels: readonly string[] };

export interface GeminiFamily {
  /** Globs of the models, without `models/`; absent: all. */
  readonly models?: readonly string[];
  /** The day on which the row was last compared with its sources. */
  readonly checked: string;
  readonly thinking: Thinking;
  /** A call that is sent back needs its thought signature. */
  readonly needsSignatures: boolean;
  /** `temperature`, `top_p` and `top_k` have an effect. */
  readonly sampling: boolean;
  /** Images and documents as data belong inside a tool result, not beside it. */
  readonly mediaInResults: boolean;
  /** OpenAI fields that the model answers with 400. */
  readonly refused: readonly string[];
}

/** What an API takes of `generateContent`, by whose name it is. */
export interface GeminiDialect {
  /** It fetches images and files by `http(s)` addresses. */
  readonly fetchesMedia: boolean;
}

/** The first family that matches the model. The last of the table must match all. */
export function familyOf(families: readonly GeminiFamily[], model: string): GeminiFamily {
  const found = families.find(({ models }) => matchesModel(models, model));
  if (found === undefined) throw new Error('The last family must match all models');
  return found;
}

/** Google's model lists have `models/` before the name, and so do its URLs. */
export function bareModel(model: string): string {
  return model.replace(/^models\//, '');
}
