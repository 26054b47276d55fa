/** A list of words, written as one text with spaces between. */
export function words(text: string): readonly string[] {
  return text.split(' ');
}
