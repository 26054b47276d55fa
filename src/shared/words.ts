/** A list of words, written as one text with spaces or line breaks between. */
export function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

/** As {@link words}, for lookups. */
export function wordSet(text: string): ReadonlySet<string> {
  return new Set(words(text));
}
