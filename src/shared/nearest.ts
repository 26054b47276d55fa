/** Suggests the known name for a misspelled one. */

/** Longer names get no suggestion: comparing two names takes the product of their lengths. */
const MAX_NAME_CHARS = 64;
const MAX_EDITS = 2;
/** One edit is allowed for this many characters of the known name, so that PATH and AUTHOR do not suggest AUTH. */
const CHARS_PER_EDIT = 3;

/** The known name with the fewest edits (at most two, and one for three characters), or undefined. */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let fewest = MAX_EDITS + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= fewest) continue;
    const edits = countEdits(name, candidate);
    if (edits < fewest && edits * CHARS_PER_EDIT <= candidate.length) {
      nearest = candidate;
      fewest = edits;
    }
  }
  return nearest;
}

/** `: did you mean <name>?`, or `''` if no known name is near. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const nearest = nearestName(name, known);
  return nearest === undefined ? '' : `: did you mean ${nearest}?`;
}

/** `<owner> no field "nmae": did you mean name? The fields are …`. @param noun what the names are of: `field`, `parameter` */
export function unknownName(owner: string, noun: string, name: string, known: readonly string[]): string {
  const hint = didYouMean(name, known);
  const all = known.length === 0 ? 'It takes none' : `The ${noun}s are ${known.join(', ')}`;
  return `${owner} no ${noun} ${JSON.stringify(name)}${hint === '' ? '.' : hint} ${all}`;
}

/** The number of insertions, deletions, substitutions and swaps of neighbors that turn one text into the other. */
function countEdits(a: string, b: string): number {
  if (a.length > MAX_NAME_CHARS || b.length > MAX_NAME_CHARS) return Number.POSITIVE_INFINITY;
  let before: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const others = [(row[j - 1] ?? 0) + 1, (last[j] ?? 0) + 1, (last[j - 1] ?? 0) + (isSame ? 0 : 1)];
      row.push(Math.min(...others, isSwap ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY));
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
