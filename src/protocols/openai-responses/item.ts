/** One item of a Responses answer while it is open: announced when it is made, written whole when it is closed. */
import type { TextAccumulator } from './text-accumulator.ts';

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

export interface ItemPlace {
  /** What is the same in the ids of one answer's items. */
  readonly idBase: string;
  /** Its place in `output`. */
  readonly index: number;
}

/** A text that goes on: the frame of its next piece, and where the piece is held. */
export interface OpenText {
  readonly of: 'message' | 'reasoning';
  /** All of the frame before the piece, behind its opening quote, and all between it and the number. */
  readonly head: string;
  readonly tail: string;
  readonly held: TextAccumulator;
}

export interface OpenItem {
  /** Where a piece of text goes that needs no other event, or null. */
  readonly openText: OpenText | null;
  /**
   * Writes the item's last events but `output_item.done`.
   * @param isCut the answer ended within it
   * @returns the item as JSON, as `output` has it
   */
  close(isCut: boolean): string;
  /** The item as it stands, for an answer that failed. */
  snapshot(): string;
}
