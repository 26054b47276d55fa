/** What a family of models takes at Converse, as the table in the provider's file states it, and the lookup by model. */
import { matchesAnyGlob } from '../../shared/glob.ts';
import type { ClaudeFamilies } from '../anthropic-messages/family.ts';

export interface ConverseFamily {
  /** Globs over the name without region and version; absent: all. */
  readonly models?: readonly string[];
  /** The day on which the row was last compared with its sources. */
  readonly checked: string;
  /**
   * How an effort is written in `additionalModelRequestFields`.
   * - `claude`: as `thinking` and `output_config`, by the model's family.
   * - `nova`: as `reasoningConfig`.
   * - `word`: as `reasoning_effort`.
   * - `none`: the model has none, and the effort is dropped.
   */
  readonly effort: 'claude' | 'nova' | 'word' | 'none';
  /** The efforts that it has, the lowest first. */
  readonly efforts?: readonly string[];
  /** Which reasoning goes back: what is signed or redacted, texts without a signature, too, or none. */
  readonly reasoningBack: 'signed' | 'texts' | 'none';
  /** Where `top_k` is, as a path in `additionalModelRequestFields`; absent: it is dropped. */
  readonly topK?: readonly string[];
  /** The ids of calls that it takes. Others are replaced. */
  readonly callIds: RegExp;
  /** It takes no choice of one tool: only that tool is offered, and a call of any is required. */
  readonly lacksNamedChoice?: true;
  /**
   * `cachePoint`s: where they may be, and whether with a `ttl`. Absent: nowhere. `behindDocuments: 'pdf'`: one right
   * behind another document is refused.
   */
  readonly cachePoints?: {
    readonly inTools: boolean;
    readonly ttl: boolean;
    readonly behindDocuments?: 'pdf';
  };
  /** Keywords of JSON Schema that it refuses in tools. References to definitions are then written out. */
  readonly refusedKeywords?: readonly string[];
  /** It cites documents whose `citations` are enabled. */
  readonly takesCitations?: true;
  /** `status` of a result is refused. */
  readonly lacksStatus?: true;
  /** Its own tool that searches the web. */
  readonly searchTool?: string;
}

export interface ConverseFamilies {
  /** The first that matches applies. The last one matches all. */
  readonly rows: readonly ConverseFamily[];
  readonly claude: ClaudeFamilies;
}

/** What stands before a model's own name: a region profile and its maker, or what precedes it in an ARN. */
const BEFORE_NAME = /^(?:arn:[^/]{0,200}\/)?(?:(?:[a-z]{2}|apac|global|us-gov)\.)?(?:[a-z][a-z0-9]{2,31}\.)?/;

/** The first family that matches the model. */
export function familyOf({ rows }: ConverseFamilies, model: string): ConverseFamily {
  const given = model.toLowerCase();
  const name = given.replace(BEFORE_NAME, '');
  const found = rows.find(
    ({ models }) => models === undefined || matchesAnyGlob(models, name) || matchesAnyGlob(models, given),
  );
  if (found === undefined) throw new Error('The last family must match all models');
  return found;
}
