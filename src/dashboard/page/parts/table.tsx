/**
 * A table described by its columns, which can be sorted and saved as CSV, and a list of named facts. And the tables on
 * the page, for the menu that saves them.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { csvLine } from '../../../shared/csv.ts';
import { count, NONE } from '../format/numbers.ts';

type Value = string | number | null | undefined;

export interface Column<Item> {
  readonly head: string;
  /** Classes of its cells: `num` is right-aligned, `name` is truncated, `csv` is in CSV only. */
  readonly look?: string;
  /** What the column is sorted by and what CSV has. Absent: neither. */
  readonly value?: (item: Item) => Value;
  /** Absent: the value. */
  readonly cell?: (item: Item) => ComponentChildren;
  /** On a phone, a row is one line of these, and opens to the others. */
  readonly isMain?: boolean;
  /** What a main number counts, behind it on a phone, where the head is not above it. */
  readonly unit?: string;
}

/** A right-aligned column of numbers, with a dash where there is none. */
export function numberColumn<Item>(
  head: string,
  value: (item: Item) => number | null,
  write: (value: number) => string = count,
): Column<Item> {
  const cell = (item: Item) => {
    const cellValue = value(item);
    return cellValue === null ? NONE : write(cellValue);
  };
  return { head, look: 'num', value, cell };
}

/** The head of a column, with `-` before it: largest first. */
export type Sort = string;

interface TableProps<Item> {
  readonly label: string;
  /** The label is its heading. */
  readonly title?: boolean;
  readonly columns: readonly Column<Item>[];
  readonly items: readonly Item[];
  readonly idOf: (item: Item) => string;
  readonly lookOf?: (item: Item) => string;
  /** Called on a click anywhere in a row, except on a link or a button. A link in the row does the same for the keyboard. */
  readonly onOpen?: (item: Item) => void;
  /** On a phone, rows unfold although they open, because what they open to does not have their columns. */
  readonly unfolds?: boolean;
  /** The order until a head is chosen. Absent: the order of the items. */
  readonly sortedBy?: Sort;
  /** How many rows are shown first, and with each click on "Show more". Absent: all. */
  readonly page?: readonly [first: number, more: number];
  /** The text in which a search looks for rows. Absent: no search. */
  readonly searched?: (item: Item) => string;
  /** What order, search and CSV cover, where that is not all there is. */
  readonly note?: string | false;
}

/** Shorter tables need no search. */
const MIN_SEARCHED = 10;

export function Table<Item>(props: TableProps<Item>) {
  const { label, columns: all, items, idOf, lookOf, onOpen, unfolds = false, sortedBy = '' } = props;
  const { page = [items.length, 0] } = props;
  const columns = all.filter(({ look }) => look !== 'csv');
  const [search, setSearch] = useState('');
  const { searched, note, title } = props;
  const part = search.trim().toLowerCase();
  const found =
    searched === undefined || part === ''
      ? items
      : items.filter((item) => searched(item).toLowerCase().includes(part));
  const [chosen, setChosen] = useState<readonly [before: Sort, sort: Sort]>(['', '']);
  const [more, setMore] = useState(0);
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const hasMain = columns.some(({ isMain }) => isMain);
  const canUnfold = hasMain && (unfolds || onOpen === undefined);
  /** Where the button that unfolds a row is: the first line of a phone has the name. */
  const headAt = Math.max(
    0,
    columns.findIndex(({ look = '', isMain }) => isMain && /\bname\b/.test(look)),
  );
  const toggle = (id: string) =>
    setUnfolded(
      (before) => new Set(before.has(id) ? [...before].filter((one) => one !== id) : [...before, id]),
    );
  // Another order of the view replaces the chosen one.
  const sort = chosen[1] !== '' && chosen[0] === sortedBy ? chosen[1] : sortedBy;
  const sorted = sortItems(found, columns, sort);
  const [first, step] = page;
  const shown = sorted.slice(0, first + more);
  const left = sorted.length - shown.length;
  useSaving(label, () => saveCsv(label, all, shown));
  const [box, isCut] = useCut();
  return (
    <section class="table">
      {title && <h2>{label}</h2>}
      {searched !== undefined && items.length >= MIN_SEARCHED && (
        <input
          type="search"
          aria-label={`Search in ${label}`}
          placeholder="part of a name or id"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      )}
      {isCut && (
        <p class="hint cut">
          <span aria-hidden="true">⇆ </span>This table scrolls sideways.
        </p>
      )}
      <section ref={box} class={isCut ? 'scroll wide' : 'scroll'} aria-label={label} tabIndex={0}>
        <table>
          <thead>
            <tr>
              {columns.map(({ head, look, value }) => {
                const isSorted = sort === head || sort === `-${head}`;
                const isDown = sort === `-${head}`;
                return (
                  <th
                    key={head}
                    scope="col"
                    class={look}
                    aria-sort={isSorted ? (isDown ? 'descending' : 'ascending') : undefined}
                  >
                    {value === undefined ? (
                      <span class={look === 'actions' ? 'sr' : ''}>{head}</span>
                    ) : (
                      <button
                        type="button"
                        class="sort"
                        onClick={() =>
                          setChosen([sortedBy, isDown || (!isSorted && look !== 'num') ? head : `-${head}`])
                        }
                      >
                        {head}
                        <span aria-hidden="true">{isSorted ? (isDown ? '\u00a0▼' : '\u00a0▲') : ''}</span>
                      </button>
                    )}
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {shown.map((item) => {
              const id = idOf(item);
              const isUnfolded = unfolded.has(id);
              const looks = [lookOf?.(item), onOpen && 'opens', hasMain && 'folds', isUnfolded && 'unfolded'];
              return (
                <tr
                  key={id}
                  class={looks.filter(Boolean).join(' ')}
                  onClick={onOpen && ((event) => isOfRow(event.target) && onOpen(item))}
                >
                  {columns.map(({ head, look = '', cell, value, isMain, unit }, i) => (
                    <td key={head} class={isMain ? `${look} main` : look} data-head={head} data-unit={unit}>
                      {cell === undefined ? value?.(item) : cell(item)}
                      {canUnfold && i === headAt && (
                        <button
                          type="button"
                          class="narrow unfold quiet"
                          aria-expanded={isUnfolded}
                          aria-label={`All of ${columns[headAt]?.value?.(item) ?? id}`}
                          onClick={() => toggle(id)}
                        >
                          {isUnfolded ? '−' : '+'}
                        </button>
                      )}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </section>
      {found.length === 0 && <p class="hint">No row has this text.</p>}
      {note && <p class="hint foot">{note}</p>}
      {left > 0 && (
        <p class="more">
          <button type="button" onClick={() => setMore(more + step)}>
            Show {Math.min(left, step)} more of {left}
          </button>
        </p>
      )}
    </section>
  );
}

/** Whether a click is on the row itself: links and buttons in it have their own meaning, and text that is selected is not a click. */
function isOfRow(target: EventTarget | null): boolean {
  const isControl = target instanceof Element && target.closest('a, button, input, .menu') !== null;
  return !isControl && String(getSelection()) === '';
}

/** Whether a table is wider than its box. */
function useCut() {
  const box = useRef<HTMLElement>(null);
  const [isCut, setCut] = useState(false);
  useEffect(() => {
    const { current } = box;
    if (current === null) return;
    const measure = () => setCut(current.scrollWidth > current.clientWidth + 1);
    const observer = new ResizeObserver(measure);
    for (const one of [current, ...current.children]) observer.observe(one);
    return () => observer.disconnect();
  }, []);
  return [box, isCut] as const;
}

/** The tables on the page, by their labels, and what saves each. */
const tables = new Map<string, { readonly current: () => void }>();
const CHANGE = 'weir-tables';

function useSaving(label: string, save: () => void): void {
  const latest = useRef(save);
  latest.current = save;
  useEffect(() => {
    tables.set(label, latest);
    dispatchEvent(new Event(CHANGE));
    return () => {
      tables.delete(label);
      dispatchEvent(new Event(CHANGE));
    };
  }, [label]);
}

/** The labels of the tables on the page, in their order, each with what saves it as CSV. */
export function useTables(): readonly (readonly [label: string, save: () => void])[] {
  const [shown, setShown] = useState<readonly string[]>([]);
  useEffect(() => {
    const update = () => setShown([...tables.keys()]);
    update();
    addEventListener(CHANGE, update);
    return () => removeEventListener(CHANGE, update);
  }, []);
  return shown.map((label) => [label, () => tables.get(label)?.current()]);
}

function sortItems<Item>(
  items: readonly Item[],
  columns: readonly Column<Item>[],
  sort: Sort,
): readonly Item[] {
  const isDown = sort.startsWith('-');
  const sorter = columns.find(({ head }) => head === sort.slice(isDown ? 1 : 0))?.value;
  if (sorter === undefined) return items;
  const order = (a: Value, b: Value) => (a === b ? 0 : (a ?? '') < (b ?? '') ? -1 : 1);
  // A missing value comes last in both orders.
  const rank = (value: Value) => (value === null || value === undefined ? 1 : 0);
  return [...items].sort((one, other) => {
    const [a, b] = [sorter(one), sorter(other)];
    return rank(a) - rank(b) || (isDown ? order(b, a) : order(a, b));
  });
}

function saveCsv<Item>(label: string, columns: readonly Column<Item>[], items: readonly Item[]): void {
  const some = columns.filter(({ value }) => value !== undefined);
  const lines = items.map((item) => some.map(({ value }) => String(value?.(item) ?? '')));
  const text = [some.map(({ head }) => head), ...lines].map(csvLine).join('');
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  link.download = `${label.toLowerCase().replaceAll(' ', '-')}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}

export type Fact = readonly [name: string, value: ComponentChildren];

/** Facts that are false, null, undefined, 0 or empty are not shown. */
export function Facts({ facts }: { facts: readonly (Fact | false | null | undefined | 0 | '')[] }) {
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
