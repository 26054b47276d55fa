/** Doc comments of source files as rows of tables in documents: what a name means stands once, where the name is declared. */

interface Row {
  readonly names: readonly string[];
  /** The comment, on one line. */
  readonly text: string;
  /** What follows the last name, such as a type. */
  readonly rest: string;
}

/** The part of a source between two texts. Throws if it is not there. */
export function between(source: string, from: string, to: string): string {
  const start = source.indexOf(from);
  const end = source.indexOf(to, start + from.length);
  if (start < 0 || end < 0) throw new Error(`There is no ${from} … ${to}`);
  return source.slice(start + from.length, end);
}

/** Each comment with the names that follow it, up to the next one. */
export function commentedRows(source: string, name: RegExp): readonly Row[] {
  return source
    .split('/**')
    .slice(1)
    .map((part) => {
      const [comment = '', code = ''] = part.split('*/', 2);
      const names = [...code.matchAll(name)];
      const last = names.at(-1);
      return {
        names: names.map(([, found = '']) => found),
        text: comment.replace(/\n\s*\* ?/g, ' ').trim(),
        rest: last === undefined ? '' : code.slice(last.index + last[0].length),
      };
    });
}

/** A page's address in a text, `docs/a.md#b`, becomes a link. A link to one is from the folder of documents. */
export function linked(text: string): string {
  return text
    .replaceAll('](docs/', '](')
    .replace(/docs\/([\w-]+)\.md(?:#([\w-]+))?/g, (_, page: string, anchor?: string) => {
      const name = (anchor === undefined || /^[a-z]\d+$/.test(anchor) ? page : anchor).replaceAll('-', ' ');
      return `[${name}](${page}.md${anchor === undefined ? '' : `#${anchor}`})`;
    })
    .replaceAll('|', '\\|');
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
