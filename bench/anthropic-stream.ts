/** Generates Anthropic's stream for the bench, modelled on recordings: named events, padded with a varying number of blanks. */

const MESSAGE = {
  id: 'msg_01XFDUDYJgAACzvnptvVoYEL',
  type: 'message',
  role: 'assistant',
  model: 'claude-haiku-4-5-20251001',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 11, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 },
};
const MAX_BLANKS = 15;
/** The number of events without text. */
export const ENVELOPE_EVENTS = 5;

function named(type: string, more: Readonly<Record<string, unknown>>, blanks = 0): string {
  const json = JSON.stringify({ type, ...more });
  return `event: ${type}\ndata: ${json.slice(0, -1)}${' '.repeat(blanks)}}\n\n`;
}

export function anthropicStart(): string {
  const block = { index: 0, content_block: { type: 'text', text: '' } };
  return named('message_start', { message: MESSAGE }) + named('content_block_start', block);
}

/** @param random returns 0 to 1; absent: no blanks */
export function anthropicText(text: string, random = () => 0): string {
  const blanks = Math.floor(random() * MAX_BLANKS);
  return named('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }, blanks);
}

export function anthropicEnd(): string {
  const usage = { input_tokens: 11, output_tokens: 5000 };
  return (
    named('content_block_stop', { index: 0 }) +
    named('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage }) +
    named('message_stop', {})
  );
}
