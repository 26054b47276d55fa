/** The levels of reasoning: one ladder, the thinking tokens that each stands for, and the level that takes the place of another. */
import { ownValue } from '../shared/json.ts';

/** The three fields with which clients set the amount of reasoning: OpenAI's, Anthropic's, and OpenRouter's. */
export const EFFORT_FIELDS = ['reasoning_effort', 'thinking', 'reasoning'] as const;
export type EffortField = (typeof EFFORT_FIELDS)[number];

/** The effort of a request that turns reasoning on without an amount. */
export const DEFAULT_EFFORT = 'medium';

/**
 * From the lowest to the highest, each with the thinking tokens that it stands for (A2), and its place. The distance between places decides
 * which level is nearest. A place never changes: a new level between two others gets a place between theirs, such as 4.5, so that the
 * nearest levels of the others stay the same.
 */
const LADDER = [
  ['none', 0, 0],
  ['minimal', 1024, 1],
  ['low', 2048, 2],
  [DEFAULT_EFFORT, 8192, 3],
  ['high', 16_384, 4],
  ['xhigh', 32_000, 5],
  ['max', 64_000, 6],
  ['ultra', 64_000, 7],
] as const;

/** The levels that reason, from the lowest to the highest. */
export const REASONING_LEVELS: readonly string[] = LADDER.slice(1).map(([level]) => level);

const PLACES: ReadonlyMap<string, number> = new Map(LADDER.map(([level, , place]) => [level, place]));
const TOKENS: ReadonlyMap<string, number> = new Map(LADDER.map(([level, tokens]) => [level, tokens]));

/** A host's own amount, such as Groq's, is in the middle. */
const HOST_LEVEL = 'default';
const MIDDLE = PLACES.get(DEFAULT_EFFORT) ?? 0;

/** Whether a word is a level of effort, such as `low`. */
export function isLevel(word: string): boolean {
  return word === HOST_LEVEL || PLACES.has(word);
}

/** The thinking tokens of a level that reasons; undefined: the word is none. */
export function tokensOfEffort(level: string): number | undefined {
  return level === 'none' ? undefined : TOKENS.get(level);
}

/** Budgets stand for this level at most. */
const HIGHEST_OF_BUDGETS = 'max';

/** The highest level whose own tokens are at most these. */
export function effortOfTokens(tokens: number): string {
  const highest = placeOf(HIGHEST_OF_BUDGETS);
  const level = LADDER.findLast(
    ([name, least, place]) => name !== 'none' && place <= highest && tokens >= least,
  );
  return level?.[0] ?? 'minimal';
}

/**
 * The level to send in the place of one that a model lacks (Q14): the nearest, and the lower of two, so that reasoning costs no more than
 * was asked for where that is possible. A request to reason never becomes one not to, and one not to reason gets the lowest level.
 * @param levels those that the model has, in any order
 * @param own the provider's own choice for levels that the model lacks
 * @returns the level itself if the model has it; null: the word is no level, or there is none in its place
 */
export function nearestEffort(
  level: string,
  levels: readonly string[],
  own: Readonly<Record<string, string>> = {},
): string | null {
  const chosen = ownValue(own, level);
  if (chosen !== undefined) return chosen;
  if (levels.includes(level)) return level;
  if (!isLevel(level)) return null;
  const distance = (other: string) => Math.abs(placeOf(other) - placeOf(level));
  const [nearest = null] = levels
    .filter((other) => other !== 'none')
    .toSorted((a, b) => distance(a) - distance(b) || placeOf(a) - placeOf(b));
  return nearest;
}

/** The place of a level; of a host's `default` and of an unknown word, the middle. */
export function placeOf(level: string): number {
  return PLACES.get(level) ?? MIDDLE;
}
