/** A table described by its columns, and a list of named facts. */
import type { ComponentChildren } from 'preact';

export interface Column<Item> {
  readonly head: ComponentChildren;
  /** Classes of its cells: `num` is right-aligned, `name` is truncated, `wide` is hidden on a narrow screen. */
  readonly look?: string;
  readonly cell: (item: Item) => ComponentChildren;
}

interface TableProps<Item> {
  readonly label: string;
  readonly columns: readonly Column<Item>[];
  readonly items: readonly Item[];
  readonly idOf: (item: Item) => string;
  readonly lookOf?: (item: Item) => string;
  /** Called on a click anywhere in a row. A link in the row does the same for the keyboard. */
  readonly onOpen?: (item: Item) => void;
}

export function Table<Item>({ label, columns, items, idOf, lookOf, onOpen }: TableProps<Item>) {
  return (
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(({ head, look }, i) => (
              <th key={i} scope="col" class={look}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={idOf(item)} class={lookOf?.(item)} onClick={onOpen && (() => onOpen(item))}>
              {columns.map(({ look, cell }, i) => (
                <td key={i} class={look}>
                  {cell(item)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface MoreProps {
  readonly left: number;
  readonly step: number;
  readonly onMore: () => void;
}

export function ShowMore({ left, step, onMore }: MoreProps) {
  if (left <= 0) return null;
  return (
    <p class="more">
      <button type="button" onClick={onMore}>
        Show {Math.min(left, step)} more of {left}
      </button>
    </p>
  );
}

type Fact = readonly [name: string, value: ComponentChildren];

/** Facts that are false, null, undefined or 0 are left out. */
export function Facts({ facts }: { facts: readonly (Fact | false | null | undefined | 0)[] }) {
  return (
    <dl class="facts">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
