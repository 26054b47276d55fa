/** Events of an OpenAI Responses server. */
import type { Json, JsonObject } from '../contract/json.ts';
import { piecesOf, sse } from './sse.ts';

/** Events without their sequence numbers, which `numbered` adds. */
export type Event = JsonObject & { readonly type: string };

const RESPONSE: JsonObject = {
  id: 'resp_c0f1',
  object: 'response',
  created_at: 1_795_000_000,
  status: 'in_progress',
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  model: 'conformance-1',
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  service_tier: 'default',
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  truncation: 'disabled',
  usage: null,
  user: null,
};

export const USAGE: JsonObject = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 18,
};

export function numbered(events: readonly Event[]): string[] {
  return events.map((event, at) => sse({ ...event, sequence_number: at }, event.type));
}

export function created(): Event[] {
  return ['response.created', 'response.in_progress'].map((type) => ({ type, response: RESPONSE }));
}

export function message(index: number, words: string): { item: JsonObject; events: Event[] } {
  const id = `msg_c0f${index}`;
  const place = { item_id: id, output_index: index, content_index: 0 };
  const empty = { type: 'output_text', annotations: [], logprobs: [], text: '' };
  const part = { ...empty, text: words };
  const item = { id, type: 'message', status: 'completed', role: 'assistant', content: [part] };
  return {
    item,
    events: [
      {
        type: 'response.output_item.added',
        output_index: index,
        item: { ...item, status: 'in_progress', content: [] },
      },
      { type: 'response.content_part.added', ...place, part: empty },
      ...piecesOf(words).map((delta) => ({
        type: 'response.output_text.delta',
        ...place,
        delta,
        logprobs: [],
      })),
      { type: 'response.output_text.done', ...place, text: words, logprobs: [] },
      { type: 'response.content_part.done', ...place, part },
      { type: 'response.output_item.done', output_index: index, item },
    ],
  };
}

export function reasoning(index: number, words: string): { item: JsonObject; events: Event[] } {
  const id = `rs_c0f${index}`;
  const place = { item_id: id, output_index: index, summary_index: 0 };
  const part = { type: 'summary_text', text: words };
  const item = { id, type: 'reasoning', summary: [part] };
  return {
    item,
    events: [
      { type: 'response.output_item.added', output_index: index, item: { ...item, summary: [] } },
      { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } },
      ...piecesOf(words).map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...place, delta })),
      { type: 'response.reasoning_summary_text.done', ...place, text: words },
      { type: 'response.reasoning_summary_part.done', ...place, part },
      { type: 'response.output_item.done', output_index: index, item },
    ],
  };
}

export function functionCall(
  index: number,
  callId: string,
  name: string,
  fragments: readonly string[],
): { item: JsonObject; events: Event[] } {
  const id = `fc_c0f${index}`;
  const place = { item_id: id, output_index: index };
  const json = fragments.join('');
  const item = { id, type: 'function_call', status: 'completed', call_id: callId, name, arguments: json };
  return {
    item,
    events: [
      {
        type: 'response.output_item.added',
        output_index: index,
        item: { ...item, status: 'in_progress', arguments: '' },
      },
      ...fragments.map((delta) => ({ type: 'response.function_call_arguments.delta', ...place, delta })),
      { type: 'response.function_call_arguments.done', ...place, name, arguments: json },
      { type: 'response.output_item.done', output_index: index, item },
    ],
  };
}

export function ended(
  status: 'completed' | 'incomplete' | 'failed',
  output: readonly JsonObject[],
  more: JsonObject = {},
): Event {
  return {
    type: `response.${status}`,
    response: { ...RESPONSE, status, output: [...output], usage: USAGE, ...more },
  };
}

/** A complete stream of these items. */
export function stream(
  items: readonly { readonly item: JsonObject; readonly events: readonly Event[] }[],
  status: 'completed' | 'incomplete' = 'completed',
  more: Readonly<Record<string, Json>> = {},
): string[] {
  const events = items.flatMap((one) => one.events);
  return numbered([
    ...created(),
    ...events,
    ended(
      status,
      items.map((one) => one.item),
      more,
    ),
  ]);
}
