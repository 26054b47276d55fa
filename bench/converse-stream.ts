/**
 * Generates the stream of Bedrock's Converse for the bench, modelled on the recording shared/streams/bedrock
 * bedrock--nova-text: messages with padding.
 */
import { eventStreamMessage } from '../tools/simulator/eventstream.ts';

function message(type: string, payload: object): Buffer {
  const headers = { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' };
  return Buffer.from(eventStreamMessage(headers, JSON.stringify(payload)));
}

export function converseStart(): Buffer {
  return message('messageStart', { role: 'assistant', p: 'abcde' });
}

/** @param padding against the measurement of lengths */
export function converseText(text: string, padding = 'abcdefghijklm'): Buffer {
  return message('contentBlockDelta', { contentBlockIndex: 0, delta: { text }, p: padding });
}

/** With the counts of the bench's streams of chat. */
export function converseEnd(): Buffer {
  const usage = { inputTokens: 11, outputTokens: 5000, totalTokens: 5011, cacheReadInputTokens: 0 };
  return Buffer.concat([
    message('contentBlockStop', { contentBlockIndex: 0, p: 'abc' }),
    message('messageStop', { stopReason: 'end_turn', p: 'abcdefgh' }),
    message('metadata', { usage, metrics: { latencyMs: 522 }, p: 'abc' }),
  ]);
}
