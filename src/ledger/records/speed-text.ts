/** How fast answers came, as a text of one column: put one behind the other, such texts are their sum (L4, M5). */
import { SPEED_COUNTS, type SpeedCount } from '../../metering/speeds.ts';

/** A step's letter. Behind it is how many answers are in it, where they are more than one. */
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqr';

/**
 * A text that is longer is made as short as it can be: an hour's has a letter or two for each request.
 * With counts below 10^10 the shortest one has fewer characters, so that it is not shortened again at once.
 */
export const MAX_SPEED_CHARS = 512;

export function writeSpeeds(speeds: readonly SpeedCount[]): string {
  return speeds.map(([at, count]) => `${LETTERS[at]}${count === 1 ? '' : count}`).join('');
}

const ZERO = '0'.charCodeAt(0);
const NINE = '9'.charCodeAt(0);
/** The step of a letter, by its code. */
const STEPS = Array.from({ length: 128 }, (_, code) => LETTERS.indexOf(String.fromCharCode(code)));

/** Each step once, and in their order, however often the text names it. */
export function readSpeeds(text: string): SpeedCount[] {
  const counts = Array.from({ length: SPEED_COUNTS }, () => 0);
  for (let i = 0; i < text.length; ) {
    const at = STEPS[text.charCodeAt(i)] ?? -1;
    let count = 0;
    for (i++; text.charCodeAt(i) >= ZERO && text.charCodeAt(i) <= NINE; i++)
      count = count * 10 + text.charCodeAt(i) - ZERO;
    if (at >= 0) counts[at] = Math.min((counts[at] ?? 0) + (count || 1), Number.MAX_SAFE_INTEGER);
  }
  return counts.flatMap((count, at): SpeedCount[] => (count === 0 ? [] : [[at, count]]));
}

/** The shortest text of the same counts. */
export function shortenSpeeds(text: string): string {
  return writeSpeeds(readSpeeds(text));
}

/** An expression of the text that an earlier version's table has in columns of one step each. */
export const FROM_STEP_COLUMNS = [...LETTERS]
  .map((letter, at) => `CASE speed_${at} WHEN 0 THEN '' ELSE '${letter}' || speed_${at} END`)
  .join(' || ');
