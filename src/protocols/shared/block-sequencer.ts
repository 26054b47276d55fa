/**
 * Orders the blocks of a streamed response: one block is open at a time, and while a tool call's arguments are
 * incomplete, pieces of other blocks wait.
 */

/** A part of a delta that belongs to one block. */
export interface BlockPiece {
  /** The tool call whose arguments `text` continues: the same object for all pieces of one call. Null: not a tool call. */
  readonly call: object | null;
  readonly text: string;
  /** The size of what the piece has besides its text, in UTF-16 units. */
  readonly extraChars?: number;
}

/** Writes blocks in the form of one protocol. */
export interface BlockWriter<Piece extends BlockPiece> {
  /** The tool call whose block is open. */
  readonly openCall: object | null;
  /** Whether the open call's arguments are complete, so that another block may follow. */
  readonly isCallComplete: boolean;
  /** Writes a piece into its block. Unless that is the open one, closes the open block and opens the piece's own. */
  write(piece: Piece): void;
  /** Whether two waiting pieces of one block may be written as one, with their texts concatenated. Absent: no. */
  canJoin?(last: Piece, next: Piece): boolean;
}

interface WaitingPiece<Piece> {
  piece: Piece;
}

/** The estimated size of a waiting piece besides its text, in UTF-16 units. */
const ENTRY_CHARS = 64;

/** Puts the pieces of interleaved blocks in sequence: one block is open, and the pieces of others wait, up to a bound. */
export class BlockSequencer<Piece extends BlockPiece> {
  readonly #writer: BlockWriter<Piece>;
  readonly #waiting: WaitingPiece<Piece>[] = [];
  /** Every call so far. A call that waits has its entry: a search for each fragment would be quadratic in the calls. */
  readonly #calls = new Map<object, WaitingPiece<Piece> | null>();
  #waitingChars = 0;

  constructor(writer: BlockWriter<Piece>) {
    this.#writer = writer;
  }

  /** The estimated size of what waits, in UTF-16 units. */
  get waitingChars(): number {
    return this.#waitingChars;
  }

  add(piece: Piece): void {
    const { call } = piece;
    const knownBlock = call === null ? undefined : this.#calls.get(call);
    if (call !== null && call === this.#writer.openCall) {
      this.#writer.write(piece);
      this.#writeWaiting();
    } else if (knownBlock !== undefined) {
      // Text after the end of a closed call is not part of its arguments.
      if (knownBlock !== null) this.#join(knownBlock, piece);
    } else if (this.#isBlocked) this.#wait(piece);
    else this.#write(piece);
  }

  /** Writes all waiting pieces. The last block stays open. */
  finish(): void {
    for (const { piece } of this.#waiting.splice(0)) this.#write(piece);
    this.#waitingChars = 0;
  }

  get #isBlocked(): boolean {
    return this.#writer.openCall !== null && !this.#writer.isCallComplete;
  }

  #wait(piece: Piece): void {
    const last = this.#waiting.at(-1);
    if (piece.call === null && last !== undefined && this.#writer.canJoin?.(last.piece, piece) === true) {
      return this.#join(last, piece);
    }
    const entry = { piece };
    this.#waiting.push(entry);
    if (piece.call !== null) this.#calls.set(piece.call, entry);
    this.#waitingChars += sizeOf(piece);
  }

  #join(entry: WaitingPiece<Piece>, { text }: Piece): void {
    entry.piece = { ...entry.piece, text: entry.piece.text + text };
    this.#waitingChars += text.length;
  }

  #writeWaiting(): void {
    while (!this.#isBlocked) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#waitingChars -= sizeOf(next.piece);
      this.#write(next.piece);
    }
  }

  #write(piece: Piece): void {
    if (piece.call !== null) this.#calls.set(piece.call, null);
    this.#writer.write(piece);
  }
}

function sizeOf({ text, extraChars = 0 }: BlockPiece): number {
  return ENTRY_CHARS + text.length + extraChars;
}
