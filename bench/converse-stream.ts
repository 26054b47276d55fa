/** Generates the stream of Bedrock's Converse for the bench, modelled on the recording shared/streams/bedrock bedrock--nova-text: messages with padding. */
import { eventStreamMessage } from '../tools/simulator/eventstream.ts';

function message(type: string, payload: object): Buffer {
  const headers = { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' };
  return Buffer.from(eventStreamMessage(headers, JSON.stringify(payload)));
}

/**
 * The messages of an answer with these texts.
 * @param paddings one for each
 */
export function converseMessages(texts: readonly string[], paddings: readonly string[]): Buffer[] {
  const usage = { inputTokens: 11, outputTokens: 5000, totalTokens: 5011 };
  return [
    message('messageStart', { role: 'assistant', p: 'abcde' }),
    ...texts.map((text, at) =>
      message('contentBlockDelta', { contentBlockIndex: 0, delta: { text }, p: paddings[at] }),
    ),
    Buffer.concat([
      message('contentBlockStop', { contentBlockIndex: 0, p: 'abc' }),
      message('messageStop', { stopReason: 'end_turn', p: 'abcdefgh' }),
      message('metadata', { usage, metrics: { latencyMs: 522 }, p: 'abc' }),
    ]),
  ];
}
