/**
 * Generates OpenAI's Responses stream for the bench, modelled on recordings: named and numbered events, deltas padded
 * to hide their length.
 */

const RESPONSE = {
  id: 'resp_0a6fc3349e38704d016a3c120ac63c819e941b6f18b7170ff4',
  object: 'response',
  created_at: 1782321674,
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  model: 'gpt-4o-mini-2024-07-18',
  output: [],
  store: false,
};
const ITEM = {
  id: 'msg_0a6fc3349e38704d016a3c120b5d28819ea807fdf185cae88e',
  type: 'message',
  role: 'assistant',
};
const PART = { type: 'output_text', annotations: [], logprobs: [], text: '' };
const AT = { item_id: ITEM.id, output_index: 0, content_index: 0 };
const USAGE = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 5000,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 5011,
};
/** The number of events without text. */
export const RESPONSES_ENVELOPE_EVENTS = 8;
const FIRST_TEXT = 4;

function named(type: string, more: Readonly<Record<string, unknown>>, sequence_number: number): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...more, sequence_number })}\n\n`;
}

export function responsesStart(): string {
  const item = { ...ITEM, status: 'in_progress', content: [] };
  return (
    named('response.created', { response: RESPONSE }, 0) +
    named('response.in_progress', { response: RESPONSE }, 1) +
    named('response.output_item.added', { output_index: 0, item }, 2) +
    named('response.content_part.added', { ...AT, part: PART }, 3)
  );
}

/** @param at the number of texts before this one */
export function responsesText(delta: string, at = 0, obfuscation = 'I7Nl54CKLwXRwW'): string {
  const more = { content_index: 0, delta, item_id: ITEM.id, logprobs: [], obfuscation, output_index: 0 };
  return named('response.output_text.delta', more, FIRST_TEXT + at);
}

/** @param text the complete output text, which the protocol repeats */
export function responsesEnd(text = '', texts = 0): string {
  const part = { ...PART, text };
  const item = { ...ITEM, status: 'completed', content: [part] };
  const response = { ...RESPONSE, status: 'completed', output: [item], usage: USAGE };
  const number = FIRST_TEXT + texts;
  return (
    named('response.output_text.done', { ...AT, text, logprobs: [] }, number) +
    named('response.content_part.done', { ...AT, part }, number + 1) +
    named('response.output_item.done', { output_index: 0, item }, number + 2) +
    named('response.completed', { response }, number + 3)
  );
}
