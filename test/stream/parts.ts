/** Test helpers: builders for parts, and a normalizer with a fixed clock and predictable random texts. */
import {
  type ChoicePart,
  type ChunkPart,
  EMPTY_CHOICE,
  EMPTY_PART,
  type ToolCallPart,
} from '../../src/canonical/part.ts';
import { UsageAccumulator } from '../../src/metering/request-meter.ts';
import { Normalizer } from '../../src/stream/normalizer.ts';
import type { ChunkContext } from '../../src/stream/types.ts';

export const NOW_SECONDS = 1_800_000_000;

/** A choice with these fields. Content counts as sent, even if empty. */
export function choice(fields: Partial<ChoicePart> = {}): ChoicePart {
  return { ...EMPTY_CHOICE, hasContent: fields.content !== undefined, ...fields };
}

/** A part with these choices and fields. */
export function part(choices: readonly ChoicePart[], fields: Partial<ChunkPart> = {}): ChunkPart {
  return {
    ...EMPTY_PART,
    choices,
    ...fields,
  };
}

export function call(fields: Partial<ToolCallPart>): ToolCallPart {
  return {
    index: undefined,
    id: undefined,
    name: undefined,
    arguments: '',
    extraContent: undefined,
    ...fields,
  };
}

export interface Bench {
  readonly normalizer: Normalizer;
  readonly accumulator: UsageAccumulator;
}

export function bench(context: Partial<ChunkContext> = {}): Bench {
  const accumulator = new UsageAccumulator(() => NOW_SECONDS * 1000, 0);
  let made = 0;
  const normalizer = new Normalizer({
    shape: 'chat',
    upstream: { name: 'Provider', secret: 'secret' },
    provider: 'provider',
    model: 'asked-for',
    reasoning: 'pass',
    usageAt: 'end',
    choices: 1,
    now: () => NOW_SECONDS,
    random: () => String(++made).padStart(4, '0'),
    meter: accumulator,
    ...context,
  });
  return { normalizer, accumulator };
}

/** The choices of each resulting chunk, or null for a part without a chunk. */
export function choicesOf(...parts: Partial<ChoicePart>[]) {
  const { normalizer } = bench();
  return parts.map((one) => normalizer.read(part([choice(one)]))?.choices ?? null);
}
