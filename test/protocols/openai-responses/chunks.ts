/** Canonical chunks for tests of the Responses writer, and its output for them. */
import type { ChatChoice, ChatChunk, Delta, ToolCallDelta } from '../../../src/canonical/chunk.ts';
import { apiError } from '../../../src/canonical/error.ts';
import type { FinishReason } from '../../../src/canonical/finish-reason.ts';
import { ResponsesWriter } from '../../../src/protocols/openai-responses/client-writer.ts';
import type { StreamFailure } from '../../../src/stream/types.ts';
import { eventsIn } from '../../../tools/conformance/contract/check-responses.ts';
import { type JsonObject, objectOf } from '../../../tools/conformance/contract/json.ts';
import { itemsOf } from '../../../tools/conformance/contract/responses-schema.ts';
import { sessionOf, WRITER_OPTIONS } from './run.ts';

const BASE = { id: 'c', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'p/m' } as const;

export function delta(value: Delta, more: Partial<ChatChoice> = {}): ChatChunk {
  return { ...BASE, choices: [{ index: 0, delta: value, logprobs: null, finish_reason: null, ...more }] };
}

export function finish(finish_reason: FinishReason): ChatChunk {
  return delta({}, { finish_reason });
}

/** The first fragment of a call. */
export function call(index: number, name: string, args = '', more: Partial<ToolCallDelta> = {}): ChatChunk {
  const first = {
    index,
    id: `call_${index}`,
    type: 'function',
    function: { name, arguments: args },
  } as const;
  return delta({ tool_calls: [{ ...first, ...more } as ToolCallDelta] });
}

export function args(index: number, piece: string): ChatChunk {
  return delta({ tool_calls: [{ index, function: { arguments: piece } }] });
}

export const USAGE: ChatChunk = {
  ...BASE,
  choices: [],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
};

export const FAILURE: StreamFailure = {
  error: apiError('upstream_truncated', 'P ended the stream before the answer was complete'),
  upstreamError: null,
};

export interface Written {
  readonly text: string;
  readonly events: readonly JsonObject[];
  /** The items of the last response object. */
  readonly items: readonly JsonObject[];
  readonly response: JsonObject;
  /** Whether the writer accepted every chunk. */
  readonly isAccepted: boolean;
}

export function takeText(writer: ResponsesWriter): string {
  if (writer.output.isEmpty) return '';
  const bytes = writer.output.take();
  const text = new TextDecoder().decode(bytes);
  writer.output.release(bytes);
  return text;
}

/** Writes a stream of the chunks. Usage and end are added. */
export function write(
  chunks: readonly ChatChunk[],
  { session = sessionOf(), failure = null as StreamFailure | null } = {},
): Written {
  const writer = new ResponsesWriter(session, WRITER_OPTIONS);
  let isAccepted = true;
  const all = failure === null ? [...chunks, USAGE] : chunks;
  for (const chunk of all) isAccepted = writer.chunk(chunk) && isAccepted;
  writer.end(failure);
  const text = takeText(writer);
  const events = eventsIn(text);
  const response = objectOf(events.at(-1)?.response);
  return { text, events, items: itemsOf(response), response, isAccepted };
}
