/** Runs bytes through the stream core as the gateway does, with a fixed clock and predictable random texts. */
import type { ApiError } from '../../src/canonical/error.ts';
import type { Policies } from '../../src/canonical/policies.ts';
import { UsageAccumulator } from '../../src/metering/request-meter.ts';
import { ChatWriter } from '../../src/protocols/openai-chat/client-writer.ts';
import { ChatJsonWriter } from '../../src/protocols/openai-chat/json-writer.ts';
import type { WriterOptions } from '../../src/protocols/shared/client-protocol.ts';
import { configuredProvider, tolerant } from '../../src/providers/compatible.ts';
import { PROVIDERS } from '../../src/providers/index.ts';
import { type Provider, ROUTE_SHAPES, type Route } from '../../src/providers/provider.ts';
import { isObject, parseJson } from '../../src/shared/json.ts';
import { EventReader, type EventReaderOptions } from '../../src/stream/event-reader.ts';
import {
  type ChunkContext,
  type ChunkWriter,
  MORE,
  type Outcome,
  type StreamWriter,
  type UpstreamProtocol,
} from '../../src/stream/types.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';

/** The folder of fixtures for providers that the `PROVIDERS` setting names. */
export const COMPATIBLE = 'compatible';
/** The client's bytes are UTF-8 (F1): anything else throws here. */
const STRICT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
export const NOW_SECONDS = 1_800_000_000;
const MAX_EVENT_BYTES = 1024 * 1024;

export const REQUEST_ID = '01a200f1-5c65-7f49-b1d7-b4925c1b0fb4';
/** Estimated. */
const PROMPT_TOKENS = 17;

function openChat({ errorFrames, maxEventBytes }: WriterOptions): StreamWriter {
  return new ChatWriter(errorFrames, maxEventBytes);
}

function providerOf(id: string): Provider {
  return PROVIDERS.find((provider) => provider.id === id) ?? configuredProvider(id, tolerant, 'PROVIDERS');
}

/**
 * The provider of a recording, by the beginning of its file's name. Weir corrects the counts of some providers. Their recordings are read
 * as those of a compatible server, because the independent reader compares the counts with those that the provider sent.
 */
export function recordedProvider(name: string): string {
  const provider = PROVIDERS.find(({ id }) => id === name.split('--')[0]);
  return provider === undefined || provider.quirks?.countsReasoningApart === true ? COMPATIBLE : provider.id;
}

export interface Conversion {
  readonly provider: string;
  readonly route: Route;
  readonly model: string;
  /** The client requested a usage chunk. */
  readonly usageChunk: boolean;
  /** The number of requested choices. Default: one. */
  readonly choices?: number;
  readonly policies?: Policies;
  readonly maxEventBytes?: number;
  /** The upstream's protocol. Default: that of its route. */
  readonly protocol?: UpstreamProtocol;
  /** Default: on. */
  readonly fastPath?: boolean;
  /** Writes the client's stream. Default: chat. */
  readonly openWriter?: ((options: WriterOptions) => StreamWriter) | undefined;
}

export interface Converted {
  /** The client's bytes as text. */
  readonly text: string;
  readonly error: ApiError | null;
  readonly accumulator: UsageAccumulator;
  /** Data events that were read, and those of them that took the fast path. */
  readonly events: number;
  readonly copiedEvents: number;
}

/** Which chunk has the client's usage (U1, U2). It depends only on the request. */
export function usageAtOf({
  usageChunk,
  policies = DEFAULT_POLICIES,
}: Conversion): Exclude<ChunkContext['usageAt'], 'wait' | 'wait_or_end'> {
  if (usageChunk || policies.usageChunk === 'always') return 'end';
  return policies.usageChunk === 'finish' ? 'finish' : 'nowhere';
}

export function optionsOf(conversion: Conversion, accumulator: UsageAccumulator): EventReaderOptions {
  const provider = providerOf(conversion.provider);
  const protocol = conversion.protocol ?? provider.endpoints[conversion.route]?.protocol;
  if (protocol === undefined) throw new Error(`${provider.id} has no ${conversion.route} endpoint`);
  const policies = conversion.policies ?? DEFAULT_POLICIES;
  let made = 0;
  return {
    protocol,
    quirks: provider.quirks ?? {},
    vendorTokens: provider.vendorTokens ?? (() => null),
    policies,
    maxEventBytes: conversion.maxEventBytes ?? MAX_EVENT_BYTES,
    context: {
      shape: ROUTE_SHAPES[conversion.route],
      upstream: { name: provider.name, secret: 'the-deployment-credential' },
      provider: provider.id,
      model: conversion.model,
      reasoning: policies.reasoning,
      usageAt: usageAtOf(conversion),
      choices: conversion.choices ?? 1,
      now: () => NOW_SECONDS,
      random: () => String(++made).padStart(4, '0'),
      meter: accumulator,
    },
  };
}

/** A stream, in the given reads. */
export function convertStream(reads: Iterable<Uint8Array>, conversion: Conversion): Converted {
  const writer = (conversion.openWriter ?? openChat)({
    errorFrames: (conversion.policies ?? DEFAULT_POLICIES).errorFrames,
    maxEventBytes: conversion.maxEventBytes ?? MAX_EVENT_BYTES,
    requestId: REQUEST_ID,
    promptTokens: PROMPT_TOKENS,
    model: conversion.model,
    now: () => NOW_SECONDS,
  });
  const fastWriter = conversion.fastPath === false ? null : writer;
  const pieces: Uint8Array[] = [];
  const converted = convert(conversion, writer, fastWriter, (reader) => {
    let outcome = MORE;
    for (const read of reads) {
      outcome = reader.push(read);
      if (outcome !== MORE) break;
      // Taken bytes may be sent later, so they must not change: they are read again at the end.
      pieces.push(writer.output.take());
    }
    if (outcome === MORE) outcome = reader.end();
    writer.end(outcome.kind === 'failed' ? outcome.failure : null);
    pieces.push(writer.output.take());
    return outcome;
  });
  return { ...converted, text: pieces.map((piece) => STRICT.decode(piece)).join('') };
}

/** One JSON object, turned into a stream or into an object. */
export function convertObject(upstream: Uint8Array, conversion: Conversion, toStream: boolean): Converted {
  const usageChunk = conversion.usageChunk || !toStream;
  const answer = parseJson(new TextDecoder().decode(upstream));
  const feed = (reader: EventReader) => (isObject(answer) ? reader.readObject(answer) : MORE);
  if (!toStream) {
    const builder = new ChatJsonWriter();
    return { ...convert({ ...conversion, usageChunk }, builder, null, feed), text: builder.take() };
  }
  const writer = new ChatWriter('data', MAX_EVENT_BYTES);
  const converted = convert({ ...conversion, usageChunk }, writer, null, (reader) => {
    const outcome = feed(reader);
    writer.end(outcome.kind === 'failed' ? outcome.failure : null);
    return outcome;
  });
  return { ...converted, text: new TextDecoder().decode(writer.output.take()) };
}

function convert(
  conversion: Conversion,
  writer: ChunkWriter,
  fastWriter: StreamWriter | null,
  feed: (reader: EventReader) => Outcome,
): Omit<Converted, 'text'> {
  const accumulator = new UsageAccumulator(() => NOW_SECONDS * 1000, 0);
  const reader = new EventReader(optionsOf(conversion, accumulator), writer, fastWriter);
  const outcome = feed(reader);
  if (outcome === MORE) throw new Error('The answer did not end');
  const error = outcome.kind === 'failed' ? outcome.failure.error : null;
  return { error, accumulator, events: reader.events, copiedEvents: reader.copiedEvents };
}

/** The bytes in pieces of one size. */
export function* cut(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
