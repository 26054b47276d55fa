/** What a family of Claude models takes in a request: the form of the table in the provider's file, which this folder reads (A2, Q9). */
import { matchesAnyGlob } from '../../shared/glob.ts';

export interface ClaudeFamily {
  /** Globs of its models' names. */
  readonly models: readonly string[];
  /** The most tokens that one of its answers can have. */
  readonly maxTokens: number;
  /** The kinds of thinking that it can be told: with a budget of tokens (`enabled`), as it sees fit (`adaptive`), or neither. */
  readonly thinking: readonly ('enabled' | 'adaptive')[];
  /** How no thinking is said: by leaving the field out, by a word, or not at all, as it always thinks. */
  readonly noThinking: 'absent' | 'disabled' | 'between_tools' | 'never';
  /** Thinking is not shown unless it is asked for. */
  readonly hidesThinking: boolean;
  /** It takes `thinking.display`. */
  readonly takesDisplay: boolean;
  /** The words of `output_config.effort`, the lowest first. */
  readonly efforts: readonly string[];
  /** `temperature`, `top_p` and `top_k`: all, one of the first two, or none of them. */
  readonly sampling: 'all' | 'one' | 'none';
  /** It answers by a schema (`output_config.format`), and has strict tools. */
  readonly takesSchemas: boolean;
  /** It takes a turn of the role `system` behind one of the user's. */
  readonly takesSystemTurns: boolean;
  /** It finds the longest prefix to cache by itself (`cache_control` at the top). */
  readonly cachesPrefixes: boolean;
}

/** The newest first, which also stands for models that no glob names. */
export type ClaudeFamilies = readonly [ClaudeFamily, ...ClaudeFamily[]];

/** The first that names the model. */
export function familyOf(families: ClaudeFamilies, model: string): ClaudeFamily {
  return families.find(({ models }) => matchesAnyGlob(models, model)) ?? families[0];
}
