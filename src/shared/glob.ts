/** Matches names against glob patterns, in which `*` stands for any characters. */

/**
 * Whether the name matches the pattern. It is not a regular expression, because a pattern may come from a request header, and a hostile
 * one would take a backtracking engine exponential time.
 */
export function matchesGlob(pattern: string, name: string): boolean {
  let p = 0;
  let n = 0;
  let starAt = -1;
  let retryAt = 0;
  while (n < name.length) {
    if (pattern[p] === '*') {
      starAt = p++;
      retryAt = n;
    } else if (p < pattern.length && pattern[p] === name[n]) {
      p++;
      n++;
    } else if (starAt >= 0) {
      p = starAt + 1;
      n = ++retryAt;
    } else {
      return false;
    }
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}

/** Whether a name matches one of the globs. */
export function matchesAnyGlob(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => matchesGlob(pattern, name));
}

/** Whether some name matches both patterns. Each pair of positions is tried once. */
export function globsOverlap(a: string, b: string): boolean {
  const failed = new Set<number>();
  const overlap = (i: number, j: number): boolean => {
    if (i === a.length && j === b.length) return true;
    const pair = i * (b.length + 1) + j;
    if (failed.has(pair)) return false;
    const doOverlap =
      (a[i] === '*' && (overlap(i + 1, j) || (j < b.length && overlap(i, j + 1)))) ||
      (b[j] === '*' && (overlap(i, j + 1) || (i < a.length && overlap(i + 1, j)))) ||
      (i < a.length && a[i] === b[j] && overlap(i + 1, j + 1));
    if (!doOverlap) failed.add(pair);
    return doOverlap;
  };
  return overlap(0, 0);
}
