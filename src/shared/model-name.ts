/** Matches the names of models against the patterns of families. */
import { matchesAnyGlob } from './glob.ts';

/** Vercel's and Cloudflare's gateways have one prefix, a gateway in front of OpenRouter or Groq two. */
const MAX_PREFIXES = 3;

/**
 * Whether a family's patterns name the model. Behind another gateway a name has prefixes, which patterns need not have: `gpt-5*` also
 * matches `openai/gpt-5` and `openrouter/openai/gpt-5`, and `openai/gpt-5*` the last one.
 * @param patterns absent: all models
 */
export function matchesModel(patterns: readonly string[] | undefined, model: string): boolean {
  if (patterns === undefined) return true;
  let name = model;
  for (let prefixes = 0; prefixes <= MAX_PREFIXES; prefixes++) {
    if (matchesAnyGlob(patterns, name)) return true;
    const slash = name.indexOf('/');
    if (slash < 0) return false;
    name = name.slice(slash + 1);
  }
  return false;
}
