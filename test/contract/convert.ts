/** Runs bytes through the stream core as the gateway would, with a fixed clock and countable random texts. */
import type { ApiError } from '../../src/canonical/error.ts';
import { isObject, parseJson } from '../../src/canonical/json.ts';
import { DEFAULT_POLICIES, type Policies } from '../../src/canonical/policies.ts';
import { Tally } from '../../src/metering/tally.ts';
import { PROVIDERS } from '../../src/providers/index.ts';
import { openaiCompatible } from '../../src/providers/openai.ts';
import { type Provider, ROUTE_SHAPES, type Route } from '../../src/providers/provider.ts';
import { type AnswerOptions, AnswerReader, type AnswerSink } from '../../src/stream/answer-reader.ts';
import { CompletionBuilder } from '../../src/stream/completion-builder.ts';
import { FrameWriter } from '../../src/stream/frame-writer.ts';

/** The folder of fixtures for providers that the `PROVIDERS` setting names. */
export const COMPATIBLE = 'compatible';
const NOW_SECONDS = 1_800_000_000;
export const MAX_EVENT_BYTES = 1024 * 1024;

export function providerOf(id: string): Provider {
  return PROVIDERS.find((provider) => provider.id === id) ?? openaiCompatible(id, 'PROVIDERS');
}

export interface Conversion {
  readonly provider: string;
  readonly route: Route;
  readonly model: string;
  readonly usageChunk: boolean;
  readonly policies?: Policies;
  readonly maxEventBytes?: number;
}

export interface Converted {
  /** What the client gets. */
  readonly text: string;
  readonly error: ApiError | null;
  readonly tally: Tally;
}

export function optionsOf(conversion: Conversion, tally: Tally): AnswerOptions {
  const provider = providerOf(conversion.provider);
  const endpoint = provider.endpoints[conversion.route];
  if (endpoint === undefined) throw new Error(`${provider.id} has no ${conversion.route} endpoint`);
  const policies = conversion.policies ?? DEFAULT_POLICIES;
  let made = 0;
  return {
    dialect: endpoint.dialect,
    quirks: provider.quirks,
    vendorTokens: provider.vendorTokens,
    policies,
    usageChunk: conversion.usageChunk || policies.usageChunk === 'always',
    maxEventBytes: conversion.maxEventBytes ?? MAX_EVENT_BYTES,
    context: {
      shape: ROUTE_SHAPES[conversion.route],
      upstream: { name: provider.name, secret: 'the-deployment-credential' },
      provider: provider.id,
      model: conversion.model,
      reasoning: policies.reasoning,
      now: () => NOW_SECONDS,
      random: () => String(++made).padStart(4, '0'),
      meter: tally,
    },
  };
}

/** A stream, in the given reads. */
export function convertStream(reads: Iterable<Uint8Array>, conversion: Conversion): Converted {
  const writer = new FrameWriter((conversion.policies ?? DEFAULT_POLICIES).errorFrames);
  return convert(conversion, writer, (reader) => {
    for (const read of reads) reader.push(read);
    reader.end();
  });
}

/** One JSON object, turned into a stream or into an object. */
export function convertObject(upstream: Uint8Array, conversion: Conversion, toStream: boolean): Converted {
  const sink = toStream ? new FrameWriter('data') : new CompletionBuilder();
  return convert({ ...conversion, usageChunk: conversion.usageChunk || !toStream }, sink, (reader) => {
    const answer = parseJson(new TextDecoder().decode(upstream));
    if (isObject(answer)) reader.plain(answer);
  });
}

function convert(
  conversion: Conversion,
  sink: AnswerSink & { take(): string },
  feed: (reader: AnswerReader) => void,
): Converted {
  const tally = new Tally(() => NOW_SECONDS * 1000, 0);
  const ends: (ApiError | null)[] = [];
  const reader = new AnswerReader(optionsOf(conversion, tally), {
    chunk: (chunk) => sink.chunk(chunk),
    vendor: (json) => sink.vendor(json),
    end: (failure) => {
      ends.push(failure?.error ?? null);
      sink.end(failure);
    },
  });
  feed(reader);
  if (ends.length !== 1) throw new Error(`The answer ended ${ends.length} times`);
  return { text: sink.take(), error: ends[0] ?? null, tally };
}

/** The bytes in pieces of one size. */
export function* cut(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
