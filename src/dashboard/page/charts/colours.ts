/** The colours of names: a name keeps its colour in every view and range for as long as the tab is open. */

const COLOURS = 6;
/** Plain, and two that differ also for readers who see no colours. */
const TEXTURES = 3;
const SLOTS = COLOURS * TEXTURES;
/** Names with a colour of their own; a tab shows fewer. */
const MAX_NAMES = 2000;
const STORED = 'weir-colours';

/** The slot of each name, by the hash of the name: names of users do not stay in the browser. */
const slots = new Map<string, number>(readStored());

function readStored(): [string, number][] {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(STORED) ?? '[]');
    if (!Array.isArray(stored)) return [];
    return stored.flatMap((entry: unknown): [string, number][] => {
      if (!Array.isArray(entry)) return [];
      const [name, slot]: unknown[] = entry;
      return typeof name === 'string' && typeof slot === 'number' && slot >= 0 && slot < SLOTS
        ? [[name, Math.floor(slot)]]
        : [];
    });
  } catch {
    return [];
  }
}

/** FNV-1a, 32 bits. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5;
  for (const char of name) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return hash >>> 0;
}

/**
 * The classes that colour each name, different for the names of one chart.
 *
 * @param names at most 18, the most important first
 */
export function coloursOf(names: readonly string[]): ReadonlyMap<string, string> {
  const takenSlots = new Set<number>();
  const isFree = (slot: number) => !takenSlots.has(slot);
  const colours = new Map<string, string>();
  const slotCount = slots.size;
  for (const name of [...names].sort((a, b) => Number(slots.has(idOf(b))) - Number(slots.has(idOf(a))))) {
    const id = idOf(name);
    const kept = slots.get(id);
    const first = hashOf(name) % COLOURS;
    const order = Array.from(
      { length: SLOTS },
      (_, i) => ((first + i) % COLOURS) + COLOURS * Math.floor(i / COLOURS),
    );
    const slot = kept !== undefined && isFree(kept) ? kept : (order.find(isFree) ?? first);
    if (kept === undefined && slots.size < MAX_NAMES) slots.set(id, slot);
    takenSlots.add(slot);
    const texture = Math.floor(slot / COLOURS);
    colours.set(name, `c${slot % COLOURS}${texture === 0 ? '' : ` t${texture}`}`);
  }
  if (slots.size > slotCount) store();
  return colours;
}

function idOf(name: string): string {
  return hashOf(name).toString(36);
}

function store(): void {
  try {
    sessionStorage.setItem(STORED, JSON.stringify([...slots]));
  } catch {
    // A browser without storage keeps the colours until the page is loaded again.
  }
}
