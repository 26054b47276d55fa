/** The input of a rule's check, and the walks over a stream that several checks share. */
import { type Frame, fault } from './check-frames.ts';
import { isCount, isObject, type Json, type JsonObject, listOf } from './json.ts';

/** What the request and the deployment's policies make of the stream: everything its bytes do not show. */
export interface Expectation {
  shape: 'chat' | 'text';
  /** The id that the client sees before the model's name, such as `deepseek`. */
  provider: string;
  /** Where usage is: on a chunk of its own at the end, on the chunk of the last finish (if it was reported by then), or nowhere. */
  usage: 'end' | 'finish' | 'nowhere';
  vendorEvents: 'strip' | 'pass';
  errorFrames: 'data' | 'event';
  /** Passed where it is absent. */
  reasoning?: 'pass' | 'strip';
  /** The client disconnected: its bytes may end anywhere. */
  clientLeft?: boolean;
  /** The request's `n`, where choices beyond it are to be reported. */
  requestedChoices?: number;
  /** The ids that the upstream gave its tool calls, where ids of Weir's own are to be checked. */
  upstreamIds?: readonly string[];
}

export interface Stream {
  expectation: Expectation;
  frames: Frame[];
  failed: boolean;
}

/** One rule's check: yields a sentence that begins with the rule's number for each break. */
export type Rule = (stream: Stream) => Iterable<string>;

export interface Chunk {
  frame: number;
  value: JsonObject;
}

export interface Choice {
  frame: number;
  /** The choice's index, or -1 where it has none (which C3 reports). */
  index: number;
  value: JsonObject;
}

export function* chunksOf(stream: Stream): Generator<Chunk> {
  for (const frame of stream.frames) {
    if (frame.kind === 'chunk') yield { frame: frame.number, value: frame.value };
  }
}

export function* choicesOf(stream: Stream): Generator<Choice> {
  for (const { frame, value } of chunksOf(stream)) {
    for (const choice of listOf(value.choices)) {
      if (!isObject(choice)) continue;
      yield { frame, index: isCount(choice.index) ? choice.index : -1, value: choice };
    }
  }
}

/** A `usage` that is null counts as none here: C1 reports it. */
export function hasUsage(chunk: JsonObject): boolean {
  return isObject(chunk.usage);
}

/** Yields at most one fault: the object must have exactly the wanted keys, in their order; the optional ones may be absent. */
export function* keyFault(
  rule: string,
  name: string,
  value: Json | undefined,
  wanted: readonly string[],
  frame: number,
  optional: readonly string[] = [],
): Generator<string> {
  if (!isObject(value)) return yield fault(rule, `${name} is not an object`, frame);
  const keys = Object.keys(value);
  const present = wanted.filter((key) => keys.includes(key) || !optional.includes(key));
  const missing = present.filter((key) => !keys.includes(key));
  const unwanted = keys.filter((key) => !wanted.includes(key));
  if (missing.length > 0) yield fault(rule, `${name} without ${missing.join(', ')}`, frame);
  else if (unwanted.length > 0) yield fault(rule, `${name} with ${unwanted.join(', ')}`, frame);
  else if (keys.join() !== present.join()) {
    yield fault(rule, `${name} has its keys in the order ${keys.join(', ')}`, frame);
  }
}
