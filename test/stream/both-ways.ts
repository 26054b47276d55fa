/** Converts a stream on the fast path and on the normal path, and compares the two. */
import { expect } from 'vitest';
import { type Conversion, type Converted, convertStream } from '../contract/convert.ts';

/** Each frame's value, because only a string's escapes may differ between the two paths. */
function values(text: string): string[] {
  return text.split('\n\n').map((frame) => {
    const json = frame.replace(/^data: /, '');
    return json.startsWith('{') ? JSON.stringify(JSON.parse(json)) : frame;
  });
}

/** Compares the results of both paths. */
export function compareWays(reads: readonly Uint8Array[], conversion: Conversion): Converted {
  const fast = convertStream(reads, conversion);
  const slow = convertStream(reads, { ...conversion, fastPath: false });
  expect(values(fast.text)).toEqual(values(slow.text));
  expect(fast.events).toBe(slow.events);
  expect(fast.error).toEqual(slow.error);
  expect(fast.accumulator.countUsage()).toEqual(slow.accumulator.countUsage());
  expect(slow.copiedEvents).toBe(0);
  return fast;
}
