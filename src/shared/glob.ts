/** Matches names against patterns in which `*` stands for any characters (vendor events, a key's models). */

/**
 * Whether the name fits the pattern. Two cursors and one way back instead of a regular expression: patterns come in a
 * request header, and a hostile one would make a backtracking engine take for ever.
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

export function matchesAnyGlob(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => matchesGlob(pattern, name));
}

/** Whether there is a name that fits both patterns. Each pair of places in them is looked at once. */
export function globsOverlap(a: string, b: string): boolean {
  const failed = new Set<number>();
  const meet = (i: number, j: number): boolean => {
    if (i === a.length && j === b.length) return true;
    const place = i * (b.length + 1) + j;
    if (failed.has(place)) return false;
    const isMet =
      (a[i] === '*' && (meet(i + 1, j) || (j < b.length && meet(i, j + 1)))) ||
      (b[j] === '*' && (meet(i, j + 1) || (i < a.length && meet(i + 1, j)))) ||
      (i < a.length && a[i] === b[j] && meet(i + 1, j + 1));
    if (!isMet) failed.add(place);
    return isMet;
  };
  return meet(0, 0);
}
