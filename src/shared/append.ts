/** Appends in a loop: `push(...items)` with many items would exceed the engine's stack. */
export function append<Item>(list: Item[], items: readonly Item[]): void {
  for (const item of items) list.push(item);
}
