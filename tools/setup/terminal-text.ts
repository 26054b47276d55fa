/** Texts of others in a terminal: without control sequences, and quoted where a shell reads them. */

/** Controls, marks of the direction of text and characters without a width: a terminal obeys them, or shows the text as another one. */
const UNPRINTABLE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** The text with such characters as `\u{1b}`. Its lines stay. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** The same on one line: a name must not look like a further line. */
export function printableName(text: string): string {
  return printable(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** Words that no shell changes. */
const PLAIN_WORD = /^[\w@%+=:,./-]+$/;

/** One word of a command in a POSIX shell. */
export function shellWord(text: string): string {
  return PLAIN_WORD.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
