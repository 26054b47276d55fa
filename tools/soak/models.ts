/** The expected output and billed tokens of the simulator's models for the soak's prompt, written down independently of Weir. */
import type { ProtocolName } from './protocols.ts';

export interface Answer {
  readonly model: string;
  readonly text: string;
  readonly reasoning: string;
  readonly completionTokens: number;
}

function answer(model: string, completionTokens: number, text: string, reasoning = ''): Answer {
  return { model, text, reasoning, completionTokens };
}

/** Models whose streams have at least eight events. */
const CHAT_MODELS: readonly Answer[] = [
  answer(
    'deepseek/deepseek-chat',
    16,
    'A weir holds the river back just enough that every boat may pass in turn. 🌊',
  ),
  answer(
    'deepseek/deepseek-reasoner',
    20,
    'Yes: 17 is prime, for neither 2 nor 3 divides it.',
    'Seventeen is odd, and nothing up to four divides…',
  ),
  answer('mistral/mistral-small-latest', 12, 'The weir sets the flow – each barge waits for its turn.'),
  answer(
    'mistral/magistral-medium-latest',
    15,
    'Twenty minutes, if no boat comes against it.',
    'Two locks, ten minutes each, one boat…',
  ),
  answer('codestral/codestral-latest', 11, 'Use a bounded queue; a slow reader then slows the writer.'),
  answer('opentoken/google/gemini-3-flash', 10, 'Packets in flight, each with its blank line behind it.'),
  answer('xerotier/llama-3.1-8b', 13, 'A fixed weir needs no keeper; a movable one needs a good one.'),
  answer(
    'xerotier/llama-3.1-8b-deep-think',
    13,
    'A fixed weir needs no keeper; a movable one needs a good one.',
  ),
  answer(
    'openai/gpt-4o-mini',
    13,
    'Water over the crest, “unhurried”, and every drop of it counted — naïvely.',
  ),
  answer(
    'compatible/llama-3.3-70b-versatile',
    10,
    'Fast water, same river: compatible is as compatible does, naïvely.',
  ),
  answer(
    'compatible/openai/gpt-oss-20b',
    14,
    'Three edges, through the second lock.',
    'They ask for the shortest path; count edges.',
  ),
  answer(
    'gemini/gemini-3-flash-preview',
    14,
    'The gate opens; the café’s basin follows, slowly.',
    'Water first, then gates, then words.',
  ),
  answer('anthropic/claude-haiku-4-5', 9, 'It keeps the upper reach deep — and calm.'),
  // Its thinking is hidden.
  answer('anthropic/claude-opus-5-5', 14, 'It keeps the upper reach deep — and calm.'),
];

const COMPLETION_MODELS: readonly Answer[] = [
  answer('deepseek/deepseek-chat', 11, '    if n < 2:\n        return n\n    previous = fib(n - 1)'),
  answer('codestral/codestral-latest', 7, '    total = sum(values)\n    return total / len(values)'),
  answer('openai/gpt-3.5-turbo-instruct', 7, '\n\nBelow the weir the water runs white'),
];

/** The providers that use each client protocol natively. */
const PASSTHROUGH_PROVIDERS: Readonly<Record<ProtocolName, readonly string[]>> = {
  chat: [],
  completions: [],
  messages: ['anthropic'],
  responses: ['openai', 'deepseek'],
};

export function providerOf(model: string): string {
  return model.slice(0, model.indexOf('/'));
}

/** @param isPassthrough the models with passthrough, or those whose responses are translated */
export function modelsOf(protocol: ProtocolName, isPassthrough: boolean): readonly Answer[] {
  const models = protocol === 'completions' ? COMPLETION_MODELS : CHAT_MODELS;
  return models.filter(
    ({ model }) => PASSTHROUGH_PROVIDERS[protocol].includes(providerOf(model)) === isPassthrough,
  );
}

export function answerOf(model: string): Answer {
  const found = CHAT_MODELS.find((one) => one.model === model);
  if (found === undefined) throw new Error(`Unknown model ${model}`);
  return found;
}
