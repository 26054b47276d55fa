/** The capabilities of a family of Claude models, as the table in the provider's file states them, and the lookup by model. */
import { matchesModel } from '../../shared/model-name.ts';

export interface ClaudeFamily {
  /** Globs of the models. */
  readonly models: readonly string[];
  /** The day on which the row was last compared with its sources. */
  readonly checked: string;
  /** The maximum of `max_tokens`. */
  readonly maxTokens: number;
  /** The supported types of thinking: with a budget in tokens (`enabled`), or chosen by the model (`adaptive`). */
  readonly thinking: readonly ('enabled' | 'adaptive')[];
  /** How to turn thinking off: without the field, by a type, or never. */
  readonly noThinking: 'absent' | 'disabled' | 'between_tools' | 'never';
  /** Thinking is hidden unless the request sets `display`. */
  readonly hidesThinking: boolean;
  /** `thinking.display` is supported. */
  readonly takesDisplay: boolean;
  /** The values of `output_config.effort`, the lowest first. */
  readonly efforts: readonly string[];
  /** `output_config.effort` is refused. False without `efforts`: the models take a budget, or nothing is known. */
  readonly refusesEffort: boolean;
  /** Supported sampling: all of `temperature`, `top_p` and `top_k`; `one`: not both of the first two; or `none`. */
  readonly sampling: 'all' | 'one' | 'none';
  /** `output_config.format` and strict tools are supported. */
  readonly takesSchemas: boolean;
  /** A `system` turn after a user turn is supported. */
  readonly takesSystemTurns: boolean;
  /** It cites documents whose `citations` are enabled. */
  readonly takesCitations: boolean;
  /** The top-level `cache_control` is supported, which caches the longest prefix. */
  readonly cachesPrefixes: boolean;
}

/** The newest family first. It also applies to models that no glob matches. */
export type ClaudeFamilies = readonly [ClaudeFamily, ...ClaudeFamily[]];

/** What AWS adds to a name: `us.anthropic.claude-sonnet-5-v1:0`. */
const AWS_VERSION = /-v\d{1,2}(?::\d{1,2})?$/;

/**
 * The first family that matches the model. Behind another gateway a Claude has dots: `anthropic/claude-sonnet-4.5`. Google's names of
 * snapshots are like `claude-sonnet-4-5@20250929`.
 */
export function familyOf(families: ClaudeFamilies, model: string): ClaudeFamily {
  const given = model.toLowerCase();
  const at = given.lastIndexOf('claude-');
  const name = at < 0 ? given : given.slice(at).replace(AWS_VERSION, '').replaceAll(/[.@]/g, '-');
  return families.find(({ models }) => matchesModel(models, name)) ?? families[0];
}
