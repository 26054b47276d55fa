/** Remembers what refusals taught: for the key whose request met one, and for all keys once a second one met it (Z4). */

/** For how long it applies. */
const MEMORY_MS = 60 * 60 * 1000;

/** Entries of a memory. The oldest is forgotten first. */
const MAX_ENTRIES = 1000;

/** The characters of all entries, with the names under which they are kept. */
const MAX_CHARS = 1024 * 1024;

/** Stands for the key in entries that all keys share. No key has an empty id. */
const ALL = '';

interface Entry<Value> {
  readonly value: Value;
  /** The value's JSON text: two keys met the same if it is equal. */
  readonly text: string;
  readonly until: number;
}

/** What one key was taught about a subject, by the names of its parts. */
type Entries<Value> = Map<string, Entry<Value>>;

/** What was taught about subjects, such as a model of a provider. */
export class TaughtMemory<Value> {
  /** By subject and key. The oldest subject is first. */
  readonly #subjects = new Map<string, Map<string, Entries<Value>>>();
  #size = 0;
  #chars = 0;

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  /** @returns whether it is new */
  note(subject: string, name: string, value: Value, keyId: string, now: number): boolean {
    const keys = this.#subjects.get(subject) ?? new Map<string, Entries<Value>>();
    this.#subjects.delete(subject);
    this.#subjects.set(subject, keys);
    const text = JSON.stringify(value);
    const met = [...keys].filter(([, entries]) => {
      const entry = entries.get(name);
      return entry !== undefined && entry.until > now && entry.text === text;
    });
    const isShared = met.some(([other]) => other !== keyId);
    if (isShared) for (const other of [...keys.keys()]) this.#delete(subject, other, name);
    this.#set(subject, isShared ? ALL : keyId, name, { value, text, until: now + MEMORY_MS });
    while (this.#size > MAX_ENTRIES || this.#chars > MAX_CHARS) this.#forgetOldest();
    return met.length === 0;
  }

  /** What applies to a key: what it was taught itself, otherwise what all were. */
  recall(subject: string, keyId: string, now: number): ReadonlyMap<string, Value> {
    const recalled = new Map<string, Value>();
    const keys = this.#subjects.get(subject);
    if (keys === undefined) return recalled;
    for (const id of [ALL, keyId]) {
      for (const [name, { value, until }] of keys.get(id) ?? []) if (until > now) recalled.set(name, value);
    }
    return recalled;
  }

  /** What a key was taught was wrong. */
  forget(subject: string, name: string, keyId: string): void {
    for (const id of [ALL, keyId]) this.#delete(subject, id, name);
  }

  #set(subject: string, keyId: string, name: string, entry: Entry<Value>): void {
    this.#delete(subject, keyId, name);
    const keys = this.#subjects.get(subject) ?? new Map<string, Entries<Value>>();
    const entries = keys.get(keyId) ?? new Map<string, Entry<Value>>();
    this.#subjects.set(subject, keys.set(keyId, entries.set(name, entry)));
    this.#size += 1;
    this.#chars += charsOf(subject, keyId, name, entry);
  }

  #delete(subject: string, keyId: string, name: string): void {
    const keys = this.#subjects.get(subject);
    const entries = keys?.get(keyId);
    const entry = entries?.get(name);
    if (keys === undefined || entries === undefined || entry === undefined) return;
    entries.delete(name);
    this.#size -= 1;
    this.#chars -= charsOf(subject, keyId, name, entry);
    if (entries.size === 0) keys.delete(keyId);
    if (keys.size === 0) this.#subjects.delete(subject);
  }

  #forgetOldest(): void {
    for (const [subject, keys] of this.#subjects) {
      for (const [keyId, entries] of keys) {
        for (const name of entries.keys()) {
          this.#delete(subject, keyId, name);
          return;
        }
      }
    }
  }
}

/** What an entry has besides its texts. */
const ENTRY_CHARS = 64;

function charsOf(subject: string, keyId: string, name: string, { text }: Entry<unknown>): number {
  return subject.length + keyId.length + name.length + text.length + ENTRY_CHARS;
}
