/** What a family of Gemini models takes: the form of the table in the provider's file, and how a model's family is found. */
import { matchesAnyGlob } from '../../shared/glob.ts';

/**
 * How a family's thinking is set.
 * - `none`: it does not think, and refuses to be asked to.
 * - `budget`: in tokens between two bounds; 0 is none, where it can be turned off.
 * - `level`: in words, the least first; the first of them is nearest to none.
 */
type Thinking =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'budget';
      readonly min: number;
      readonly max: number;
      readonly canBeOff: boolean;
      /** It thinks where nothing is said. */
      readonly byDefault: boolean;
    }
  | { readonly kind: 'level'; readonly levels: readonly string[] };

export interface GeminiFamily {
  /** Globs of the models, without `models/`; absent: all. */
  readonly models?: readonly string[];
  readonly thinking: Thinking;
  /** A call may not come back without its signature (A7). */
  readonly needsSignatures: boolean;
  /** `temperature`, `top_p` and `top_k` count. */
  readonly sampling: boolean;
  /** Images stand within a tool's result, not beside it. */
  readonly mediaInResults: boolean;
  /** OpenAI's fields that it answers 400 to. */
  readonly refused: readonly string[];
}

/** The first that names the model: the last of the table must name all. */
export function familyOf(families: readonly GeminiFamily[], model: string): GeminiFamily {
  const name = bareModel(model);
  const found = families.find(({ models }) => models === undefined || matchesAnyGlob(models, name));
  if (found === undefined) throw new Error('The last family must name all models');
  return found;
}

/** Google's lists have `models/` before a model's name; its URLs have it anyway. */
export function bareModel(model: string): string {
  return model.replace(/^models\//, '');
}
