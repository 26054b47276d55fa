/** The views that a reader has saved: names and addresses, in this browser. */

export interface SavedView {
  readonly name: string;
  /** The address behind `#`. */
  readonly hash: string;
}

const STORED = 'weir-views';
const MAX_VIEWS = 50;

export function readSavedViews(): readonly SavedView[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORED) ?? '[]');
    if (!Array.isArray(stored)) return [];
    return stored.flatMap((entry: unknown): SavedView[] => {
      if (typeof entry !== 'object' || entry === null || !('name' in entry && 'hash' in entry)) return [];
      const { name, hash } = entry;
      return typeof name === 'string' && typeof hash === 'string' && hash.startsWith('#/')
        ? [{ name, hash }]
        : [];
    });
  } catch {
    return [];
  }
}

/** Adds a view, in place of one with the same name. @returns all; null: the browser keeps none */
export function saveView(view: SavedView): readonly SavedView[] | null {
  const others = readSavedViews().filter(({ name }) => name !== view.name);
  return store([...others, view].slice(-MAX_VIEWS));
}

/** @returns those that are left; null: the browser keeps none */
export function removeView(name: string): readonly SavedView[] | null {
  return store(readSavedViews().filter((view) => view.name !== name));
}

function store(views: readonly SavedView[]): readonly SavedView[] | null {
  try {
    localStorage.setItem(STORED, JSON.stringify(views));
    return views;
  } catch {
    return null;
  }
}
