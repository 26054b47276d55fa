/** OpenAI's Responses as an upstream speaks it: what its events say, for the metering of a client that speaks it too (N2). */
import { isObject, type JsonObject, objectOf, readArray, readText } from '../canonical/json.ts';
import { type ChoicePart, type ChunkPart, EMPTY_CHOICE, type ToolCallPart } from '../canonical/part.ts';
import { findUpstreamError, readUpstreamError } from '../canonical/upstream-error.ts';
import { type DialectQuirks, stateless } from '../stream/dialect.ts';
import { readEnvelope, readName, readUsage } from './envelope.ts';

export const openaiResponses = stateless((event, quirks) =>
  event.object === 'response' ? readResponse(event, quirks) : readEvent(event, quirks),
);

/** The kinds of events that carry a piece of the answer, and where it counts. */
const DELTAS: Readonly<Record<string, (delta: string) => Partial<ChoicePart>>> = {
  'response.output_text.delta': (content) => ({ content }),
  'response.refusal.delta': (refusal) => ({ refusal }),
  'response.reasoning_summary_text.delta': (reasoning) => ({ reasoning }),
  'response.reasoning_text.delta': (reasoning) => ({ reasoning }),
  'response.function_call_arguments.delta': (piece) => ({ toolCalls: [fragment(piece)] }),
  'response.custom_tool_call_input.delta': (piece) => ({ toolCalls: [fragment(piece)] }),
  'response.mcp_call_arguments.delta': (piece) => ({ toolCalls: [fragment(piece)] }),
  'response.code_interpreter_call_code.delta': (piece) => ({ toolCalls: [fragment(piece)] }),
};

/** After them nothing comes but `[DONE]`, where the upstream has one. */
const ENDINGS: readonly string[] = ['response.completed', 'response.incomplete', 'response.failed'];

function readEvent(event: JsonObject, quirks: DialectQuirks): ChunkPart {
  const type = readText(event.type) ?? '';
  const delta = DELTAS[type];
  if (delta !== undefined) return part({}, [choice(delta(readText(event.delta) ?? ''))]);
  if (type === 'response.output_item.added' && isObject(event.item)) {
    const name = readName(event.item.name);
    return part({}, name === undefined ? [] : [choice({ toolCalls: [{ ...fragment(''), name }] })]);
  }
  if (type === 'error' || type === '') return { ...part({}, []), error: findUpstreamError(event) };
  if (!isObject(event.response)) return part({}, []);
  const read = readState(event.response, quirks);
  return ENDINGS.includes(type) ? { ...read, ends: true } : read;
}

/** A response object as its stream's events repeat it: the items in it were told before. */
function readState(response: JsonObject, { costOf }: DialectQuirks): ChunkPart {
  const { usage, error, status } = response;
  const report = isObject(usage) ? readUsage(usage) : null;
  const finishWord = finishOf(response);
  return {
    ...part(response, finishWord === null ? [] : [choice({ finishWord })]),
    usage: report === null || !isObject(usage) ? null : { ...report, cost: costOf?.(usage) },
    error: status === 'failed' ? readUpstreamError(objectOf(error)) : null,
  };
}

/** A plain answer: all at once. */
function readResponse(response: JsonObject, quirks: DialectQuirks): ChunkPart {
  const read = readState(response, quirks);
  const items = readArray(response.output).filter(isObject).map(readItem);
  const end = choice({ finishWord: finishOf(response) });
  return { ...read, choices: [...items, end] };
}

function readItem(item: JsonObject): ChoicePart {
  const parts = [...readArray(item.content), ...readArray(item.summary)].filter(isObject);
  const texts = (key: string) => parts.map((one) => readText(one[key]) ?? '').join('');
  const name = readName(item.name);
  const args = readText(item.arguments) ?? readText(item.input) ?? '';
  const said = item.type === 'reasoning' ? { reasoning: texts('text') } : { content: texts('text') };
  const toolCalls = name === undefined ? [] : [{ ...fragment(args), name }];
  return choice({ ...said, refusal: texts('refusal'), toolCalls });
}

/** `completed`, or why the answer is not whole; null while there is no end, and for a failure. */
function finishOf({ status, incomplete_details }: JsonObject): string | null {
  if (status === 'completed') return status;
  if (status !== 'incomplete') return null;
  return (isObject(incomplete_details) ? readText(incomplete_details.reason) : undefined) ?? status;
}

function part(response: JsonObject, choices: readonly ChoicePart[]): ChunkPart {
  return { ...readEnvelope({}, {}, () => EMPTY_CHOICE), ...named(response), choices };
}

function named(response: JsonObject): Pick<ChunkPart, 'id' | 'model' | 'serviceTier'> {
  const { id, model, service_tier } = response;
  return { id: readName(id), model: readName(model), serviceTier: readName(service_tier) };
}

function choice(of: Partial<ChoicePart>): ChoicePart {
  return { ...EMPTY_CHOICE, ...of };
}

function fragment(args: string): ToolCallPart {
  return { index: undefined, id: undefined, name: undefined, arguments: args, extraContent: undefined };
}
