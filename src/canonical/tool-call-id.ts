/** Tool call ids in the form that every provider accepts: nine letters and digits (Q3). */
import { hash53 } from '../shared/fingerprint.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_CHARS = 9;

/**
 * The id for a text. The same text gives the same id, so a call and its result agree without state. 53 bits make a collision within one
 * conversation improbable.
 */
export function toolCallId(text: string): string {
  let rest = hash53(text);
  let id = '';
  for (let i = 0; i < ID_CHARS; i++) {
    id += DIGITS[rest % DIGITS.length];
    rest = Math.floor(rest / DIGITS.length);
  }
  return id;
}
