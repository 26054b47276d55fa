/** Regular expressions that are made when they are first needed. */

/**
 * A pattern with properties of Unicode, such as `\p{L}`. V8 reads each literal when it compiles the script, also in functions that never
 * run, and collects all characters of each property: a tenth of what the script takes to compile.
 * @param source as in a literal, with its backslashes doubled
 */
export function lazyPattern(source: string, flags: string): () => RegExp {
  let pattern: RegExp | undefined;
  return () => {
    // A template literal: tools/patterns checks the argument of each call of this function, and does not check this line.
    pattern ??= new RegExp(`${source}`, flags);
    return pattern;
  };
}
