/**
 * A name of any characters, isolated from the text around it. It wraps behind its separators first, but before no short
 * end such as `com`, and within a word only where nothing else helps.
 */

export function Name({ text, title = text }: { text: string; title?: string }) {
  const parts = visible(text).split(/(?<=[/:_@]|\.(?=.{5}))/);
  return <bdi title={title}>{parts.map((part, i) => [i > 0 && <wbr key={i} />, part])}</bdi>;
}

/** A name without any visible character is shown by its code points, so that it can be read and clicked. */
function visible(text: string): string {
  if (/[^\p{C}\p{Z}]/u.test(text)) return text;
  return [...text].map((char) => `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase()}`).join(' ');
}
