/** The anchors of a document: its headings and its rules. */

/** Text without fenced code, where `#` begins a comment and brackets are not links. */
export function prose(text: string): string {
  return text.replace(/^( *)```[\s\S]*?^\1```/gm, '');
}

/** The end of a rule, which names its code: `<a id="k5">K5</a>`. */
export const RULE = /<a id="([a-z]\d{1,2})">([A-Z]\d{1,2})<\/a>/g;

/** Anchors as GitHub makes them: lower case, punctuation removed, spaces as hyphens, a number added to repeats. And those of rules. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set([...text.matchAll(RULE)].map(([, anchor = '']) => anchor));
  for (const [, heading = ''] of prose(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const base = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/ /g, '-');
    let anchor = base;
    for (let repeat = 1; anchors.has(anchor); repeat++) anchor = `${base}-${repeat}`;
    anchors.add(anchor);
  }
  return anchors;
}
