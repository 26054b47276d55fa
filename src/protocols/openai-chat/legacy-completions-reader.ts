/** OpenAI's legacy completions (`text_completion`): `choices[].text`. DeepSeek's fill-in-the-middle uses it. */

import { readLogprobs } from '../../canonical/logprobs.ts';
import type { ChoicePart } from '../../canonical/part.ts';
import { type JsonObject, readText } from '../../shared/json.ts';
import { stateless } from '../../stream/upstream-protocol.ts';
import { readEnvelope } from './upstream-envelope.ts';

export const openaiCompletions = stateless((event, quirks) => readEnvelope(event, quirks, readChoice));

function readChoice(choice: JsonObject, index: number): ChoicePart {
  return {
    index,
    hasRole: false,
    hasContent: typeof choice.text === 'string',
    content: readText(choice.text) ?? '',
    reasoning: '',
    refusal: '',
    toolCalls: [],
    reasoningDetails: [],
    logprobs: readLogprobs(choice.logprobs),
    finishWord: readText(choice.finish_reason) ?? null,
  };
}
