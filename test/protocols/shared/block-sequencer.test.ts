/** Tests the order of blocks: one is open at a time, and pieces of other blocks wait for an incomplete tool call. */
import { expect, test } from 'vitest';
import {
  type BlockPiece,
  BlockSequencer,
  type BlockWriter,
} from '../../../src/protocols/shared/block-sequencer.ts';
import { JsonProgress } from '../../../src/shared/json-progress.ts';

interface Piece extends BlockPiece {
  readonly call: Call | null;
}

interface Call {
  readonly name: string;
}

/** Records the pieces in the order in which they are written. */
class Recorder implements BlockWriter<Piece> {
  readonly written: string[] = [];
  readonly #joins: boolean;
  openCall: Call | null = null;
  #progress = new JsonProgress();

  constructor(joins = false) {
    this.#joins = joins;
  }

  get isCallComplete(): boolean {
    return this.#progress.isComplete;
  }

  write({ call, text }: Piece): void {
    if (call !== this.openCall) {
      this.openCall = call;
      this.#progress = new JsonProgress();
    }
    this.#progress.push(text);
    this.written.push(`${call?.name ?? 'text'}: ${text}`);
  }

  canJoin(): boolean {
    return this.#joins;
  }
}

const A: Call = { name: 'a' };
const B: Call = { name: 'b' };

function run(pieces: readonly (readonly [call: Call | null, text: string])[], joins = false) {
  const recorder = new Recorder(joins);
  const sequencer = new BlockSequencer<Piece>(recorder);
  const waiting = pieces.map(([call, text]) => {
    sequencer.add({ call, text });
    return sequencer.waitingChars;
  });
  const before = [...recorder.written];
  sequencer.finish();
  return { before, after: recorder.written.slice(before.length), waiting, left: sequencer.waitingChars };
}

test('I4 text and a call wait for the open call, and follow it in their order', () => {
  const { before, after } = run([
    [A, '{"x"'],
    [null, 'one'],
    [B, '{'],
    [null, 'two'],
    [A, ':1}'],
    [B, '}'],
  ]);
  expect(before).toEqual(['a: {"x"', 'a: :1}', 'text: one', 'b: {', 'b: }', 'text: two']);
  expect(after).toEqual([]);
});

test('I4 the fragments of a waiting call are joined, other pieces only if the writer allows it', () => {
  const pieces = [
    [A, '{'],
    [null, 'one '],
    [null, 'two'],
    [B, '{"y"'],
    [B, ':1}'],
    [A, '}'],
  ] as const;
  expect(run(pieces).before).toEqual(['a: {', 'a: }', 'text: one ', 'text: two', 'b: {"y":1}']);
  expect(run(pieces, true).before).toEqual(['a: {', 'a: }', 'text: one two', 'b: {"y":1}']);
});

test('I4 fragments after the end of a closed call are dropped, and separate nothing', () => {
  const { before } = run(
    [
      [A, '{}'],
      [B, '{'],
      [null, 'one '],
      [A, ' '],
      [null, 'two'],
      [B, '}'],
    ],
    true,
  );
  expect(before).toEqual(['a: {}', 'b: {', 'b: }', 'text: one two']);
});

test('I4 at the finish all that waits is written, also after an incomplete call', () => {
  const { before, after } = run([
    [A, '{'],
    [B, '{'],
    [null, 'one'],
  ]);
  expect(before).toEqual(['a: {']);
  expect(after).toEqual(['b: {', 'text: one']);
});

test('B1 the size of what waits grows with each entry and its text, and ends at 0', () => {
  const { waiting, left } = run([
    [A, '{'],
    [null, 'one'],
    [B, '{'],
    [B, '"x"'],
    [A, '}'],
  ]);
  expect(waiting).toEqual([0, 67, 132, 135, 0]);
  expect(left).toBe(0);
});
