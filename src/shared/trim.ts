/** Removes repeated characters from the end of a text, in linear time: the pattern `/\/+$/` tries each run of slashes again. */
export function trimEnd(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return text.slice(0, end);
}
