/** Checks a client's Messages stream against Anthropic's documentation, independent of `src`. */
import { isObject, type Json, type JsonObject, objectOf, parseJson, textOf } from './json.ts';

/** A client that validates a schema fails on any other event name. */
const EVENTS = [
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'ping',
  'error',
];

const ERROR_TYPES = [
  'invalid_request_error',
  'authentication_error',
  'billing_error',
  'permission_error',
  'not_found_error',
  'conflict_error',
  'request_too_large',
  'rate_limit_error',
  'api_error',
  'timeout_error',
  'overloaded_error',
];
/** The stop reasons that Weir sends. */
const STOP_REASONS = ['end_turn', 'max_tokens', 'tool_use', 'refusal', 'stop_sequence'];
/** The deltas of a block, and the key of each. */
const DELTAS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  text: { text_delta: 'text' },
  thinking: { thinking_delta: 'thinking', signature_delta: 'signature' },
  tool_use: { input_json_delta: 'partial_json' },
};

/** Keys that Anthropic's types require, possibly with null: @anthropic-ai/sdk 1.12.0, resources/messages/messages.d.ts (2026-11-22). */
const USAGE_KEYS = [
  'input_tokens',
  'output_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens_details',
  'server_tool_use',
];
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  message: ['id', 'container', 'content', 'diagnostics', 'model', 'role', 'stop_details', 'stop_reason'],
  usage: [...USAGE_KEYS, 'cache_creation', 'inference_geo', 'service_tier', 'speed'],
  delta: ['container', 'stop_details', 'stop_reason', 'stop_sequence'],
  deltaUsage: USAGE_KEYS,
  text: ['citations', 'text'],
  tool_use: ['id', 'caller', 'input', 'name'],
  thinking: ['signature', 'thinking'],
  redacted_thinking: ['data'],
};

/** Both ends of a place in a document, by the type of its citation. */
const PLACES: Readonly<Record<string, readonly string[]>> = {
  char_location: ['start_char_index', 'end_char_index'],
  page_location: ['start_page_number', 'end_page_number'],
  content_block_location: ['start_block_index', 'end_block_index'],
};
const CITATION_KEYS = ['cited_text', 'document_title', 'file_id'];

const LACKS = 'lacks a key';

/** The required keys that the object lacks. */
export function missingKeys(kind: string, object: Json | undefined): string[] {
  return (REQUIRED[kind] ?? []).filter((key) => !(key in objectOf(object)));
}

interface Block {
  readonly type: string;
  deltas: number;
  isSigned: boolean;
  json: string;
}

interface State {
  readonly faults: string[];
  begun: boolean;
  blocks: number;
  calls: number;
  open: Block | null;
  stop: string | null;
  over: boolean;
}

/** The rules that the stream breaks. @param isPassed a provider's own stream, which may lack keys that were introduced later */
export function checkMessages(text: string, isPassed = false): string[] {
  const state: State = { faults: [], begun: false, blocks: 0, calls: 0, open: null, stop: null, over: false };
  const frames = text.split('\n\n');
  if (frames.pop() !== '') state.faults.push('the last frame has no blank line');
  for (const frame of frames) checkFrame(state, frame);
  if (!state.over) state.faults.push('neither message_stop nor error at the end');
  return isPassed ? state.faults.filter((fault) => !fault.includes(LACKS)) : state.faults;
}

function checkFrame(state: State, frame: string): void {
  const fault = (message: string) => void state.faults.push(`${message}: ${frame.slice(0, 200)}`);
  if (state.over) fault('a frame behind the last one');
  if (frame === ': heartbeat') return;
  const [, name = '', json = ''] = /^event: (\w+)\ndata: ([^\n]+)$/.exec(frame) ?? [];
  const event = parseJson(json);
  if (!EVENTS.includes(name) || !isObject(event)) return fault('no event of the protocol');
  if (event.type !== name) fault('type is not the name');
  if (!state.begun && name !== 'message_start' && name !== 'error') return fault('before message_start');
  const checks: Readonly<Record<string, () => void>> = {
    message_start: () => start(state, objectOf(event.message), fault),
    content_block_start: () => openBlock(state, event, fault),
    content_block_delta: () => delta(state, event, fault),
    content_block_stop: () => closeBlock(state, event, fault),
    message_delta: () => messageDelta(state, event, fault),
    message_stop: () => messageStop(state, fault),
    error: () => error(state, event, fault),
  };
  checks[name]?.();
}

type Fault = (message: string) => void;

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}

function start(state: State, message: JsonObject, fault: Fault): void {
  if (state.begun) fault('a second message_start');
  state.begun = true;
  const { id, type, role, model, content, stop_reason, stop_sequence } = message;
  if (!/^msg_\w+$/.test(textOf(id)) || type !== 'message' || role !== 'assistant') fault('no message');
  if (textOf(model) === '') fault('no model');
  if (!Array.isArray(content) || content.length > 0) fault('content is not []');
  if (stop_reason !== null || stop_sequence !== null) fault('stopped at its start');
  if (missingKeys('message', message).length > 0) fault(`the message ${LACKS}`);
  const usage = objectOf(message.usage);
  if (missingKeys('usage', usage).length > 0) fault(`its usage ${LACKS}`);
  const counts = ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'];
  if (!counts.every((name) => isCount(usage[name]))) fault('usage of message_start is not whole');
}

function openBlock(state: State, event: JsonObject, fault: Fault): void {
  if (state.open !== null) fault('a block while another is open');
  if (state.stop !== null) fault('a block behind message_delta');
  if (event.index !== state.blocks) fault('index is not the next');
  state.blocks++;
  const block = objectOf(event.content_block);
  const type = textOf(block.type);
  const isWhole: Readonly<Record<string, boolean>> = {
    text: block.text === '',
    thinking: block.thinking === '' && block.signature === '',
    redacted_thinking: textOf(block.data) !== '',
    tool_use:
      /^toolu_[\w-]+$/.test(textOf(block.id)) &&
      textOf(block.name) !== '' &&
      JSON.stringify(block.input) === '{}',
  };
  if (isWhole[type] !== true) fault('no block as it begins');
  if (missingKeys(type, block).length > 0) fault(`the block ${LACKS}`);
  if (type === 'tool_use') state.calls++;
  state.open = { type, deltas: 0, isSigned: false, json: '' };
}

function delta(state: State, event: JsonObject, fault: Fault): void {
  const block = state.open;
  if (block === null || event.index !== state.blocks - 1) return fault('a delta of no open block');
  const { type, ...rest } = objectOf(event.delta);
  if (type === 'citations_delta') return citation(block, objectOf(rest.citation), fault);
  const key = DELTAS[block.type]?.[textOf(type)];
  const text = key === undefined ? undefined : rest[key];
  if (typeof text !== 'string') return fault('a delta of another block');
  if (block.isSigned) fault('a delta behind the signature');
  if (type === 'signature_delta') block.isSigned = true;
  const isFirstOfCall = type === 'input_json_delta' && block.deltas === 0;
  if ((text === '') !== isFirstOfCall) fault('an empty delta, or none at the start of a call');
  if (type === 'input_json_delta') block.json += text;
  block.deltas++;
}

/** Of a text block. That of a page is Claude's own, which only its own stream has. */
function citation(block: Block, { type, ...rest }: JsonObject, fault: Fault): void {
  const place = PLACES[textOf(type)];
  if (block.type !== 'text') return fault('a citation of no text');
  if (type === 'web_search_result_location' || type === 'search_result_location') return;
  if (place === undefined || !place.every((key) => isCount(rest[key])) || !isCount(rest.document_index))
    return fault('a citation of no place');
  if (CITATION_KEYS.some((key) => !(key in rest))) fault(`the citation ${LACKS}`);
}

function closeBlock(state: State, event: JsonObject, fault: Fault): void {
  if (state.open === null || event.index !== state.blocks - 1) fault('no such block is open');
  if (state.open?.type === 'tool_use' && state.open.deltas === 0) fault('a call without a delta');
  state.open = null;
}

function messageDelta(state: State, event: JsonObject, fault: Fault): void {
  if (state.open !== null) fault('message_delta while a block is open');
  if (state.stop !== null) fault('a second message_delta');
  const { stop_reason, stop_sequence } = objectOf(event.delta);
  state.stop = textOf(stop_reason);
  if (!STOP_REASONS.includes(state.stop)) fault('no stop reason');
  const hasSequence = typeof stop_sequence === 'string' && stop_sequence !== '';
  if (state.stop === 'stop_sequence' ? !hasSequence : stop_sequence !== null) {
    fault('a stop sequence that is not the reason, or none');
  }
  if (missingKeys('delta', event.delta).length > 0) fault(`the delta ${LACKS}`);
  if (missingKeys('deltaUsage', event.usage).length > 0) fault(`its usage ${LACKS}`);
  const hasCall = state.calls > 0;
  if (
    ['end_turn', 'stop_sequence', 'tool_use'].includes(state.stop) &&
    hasCall !== (state.stop === 'tool_use')
  ) {
    fault('tool_use is not reported where there are calls');
  }
  const usage = objectOf(event.usage);
  if (!isCount(usage.input_tokens) || !isCount(usage.output_tokens)) fault('no usage at the end');
}

function messageStop(state: State, fault: Fault): void {
  if (state.stop === null) fault('message_stop without message_delta');
  state.over = true;
}

function error(state: State, event: JsonObject, fault: Fault): void {
  const { type, message } = objectOf(event.error);
  if (!ERROR_TYPES.includes(textOf(type)) || textOf(message) === '') fault('no error');
  if (state.stop !== null) fault('an error behind message_delta');
  state.over = true;
}
