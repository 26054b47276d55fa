/** A name that wraps behind its separators first, and within a word only where nothing else helps. */

export function Name({ text, title = text }: { text: string; title?: string }) {
  const parts = text.split(/(?<=[/:_.])/);
  return <bdi title={title}>{parts.map((part, i) => [i > 0 && <wbr key={i} />, part])}</bdi>;
}
