/** Tells whether the JSON object that comes in pieces is whole: a call's arguments end where their first brace is closed. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING = [0x7b, 0x5b];
const CLOSING = [0x7d, 0x5d];

export class JsonProgress {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #isWhole = false;

  /** The first object or list has ended; what is no object never is whole. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** @returns how much of the piece belongs to the object: what comes behind its end does not */
  push(piece: string): number {
    let i = 0;
    for (; i < piece.length && !this.#isWhole; i++) {
      const unit = piece.charCodeAt(i);
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isInString) {
        if (unit === BACKSLASH) this.#isEscaped = true;
        else if (unit === QUOTE) this.#isInString = false;
      } else if (unit === QUOTE) this.#isInString = true;
      else if (OPENING.includes(unit)) this.#depth++;
      else if (CLOSING.includes(unit)) this.#isWhole = --this.#depth <= 0;
    }
    return i;
  }
}
