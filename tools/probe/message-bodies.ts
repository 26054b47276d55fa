/** The probe's requests for messages, one for each field and form that clients send. */
import type { JsonObject } from '../../src/shared/json.ts';
import { type ProbeBody, TOOLS } from './bodies.ts';

const THOUGHT = 'The user greets me. I greet back.';
const DETAILS = [{ type: 'reasoning.text', text: THOUGHT, index: 0 }];
/** Nine letters and digits, which every provider accepts, so that no turn is rejected because of its ids. */
const IDS = ['weir00001', 'weir00002'] as const;
const FOREIGN_IDS = ['call_9rD4Zk2mVbQ7xWc1TgHs8LpA', 'toolu_01A-b_C.d:1'] as const;

/** A conversation whose assistant or user message has further keys. */
function talk(name: string, answer: JsonObject, question: JsonObject = {}): ProbeBody {
  const messages = [
    { role: 'user', content: 'Hello', ...question },
    { role: 'assistant', content: 'Hello!', ...answer },
    { role: 'user', content: 'Answer with the single word "weir".' },
  ];
  return { name: `message/${name}`, route: 'chat', body: { messages } };
}

interface TurnOptions {
  /** On each assistant message. */
  readonly answer?: JsonObject;
  /** On each tool message. */
  readonly result?: JsonObject;
  readonly ids?: readonly [string, string];
  readonly more?: JsonObject;
}

/** Five steps of an agent: a question, a call and its result, another call and its result. */
function turn(name: string, { answer, result, ids = IDS, more }: TurnOptions): ProbeBody {
  const [first, second] = ids;
  const messages = [
    { role: 'user', content: 'Is it warmer in Oslo or in Rome?' },
    call(first, 'Oslo', answer),
    { role: 'tool', tool_call_id: first, content: '4 degrees', ...result },
    call(second, 'Rome', answer),
    { role: 'tool', tool_call_id: second, content: '19 degrees', ...result },
  ];
  return { name, route: 'chat', body: { messages, tools: TOOLS, ...more } };
}

function call(id: string, city: string, more: JsonObject = { content: null }): JsonObject {
  const requested = { name: 'weather', arguments: JSON.stringify({ city }) };
  return { role: 'assistant', ...more, tool_calls: [{ id, type: 'function', function: requested }] };
}

function part(text: string, more: JsonObject = {}): readonly JsonObject[] {
  return [{ type: 'text', text, ...more }];
}

export const MESSAGE_BODIES: readonly ProbeBody[] = [
  talk('reasoning_content', { reasoning_content: THOUGHT }),
  talk('reasoning', { reasoning: THOUGHT }),
  talk('reasoning_details', { reasoning_details: DETAILS }),
  talk('name', {}, { name: 'ada' }),
  turn('message/name-of-tool', { result: { name: 'weather' } }),
  talk('refusal=null', { refusal: null }),
  talk('annotations', { annotations: [] }),
  {
    name: 'message/developer',
    route: 'chat',
    body: {
      messages: [
        { role: 'developer', content: 'Answer with the single word "weir".' },
        { role: 'user', content: 'Hello' },
      ],
    },
  },
  turn('message/content-missing', { answer: {} }),
  talk('cache_control', {}, { content: part('Hello', { cache_control: { type: 'ephemeral' } }) }),
  talk('unknown', { unheard_of: true }),
  turn('message/foreign-ids', { ids: FOREIGN_IDS }),
  talk('text-parts-of-assistant', { content: part('Hello!') }),
  turn('message/text-parts-of-tool', { result: { content: part('12 degrees') } }),
  turn('turn/without-reasoning', { more: { stream: true } }),
  turn('turn/reasoning_content', {
    answer: { content: '', reasoning_content: THOUGHT },
    more: { stream: true },
  }),
  turn('turn/reasoning', { answer: { content: '', reasoning: THOUGHT } }),
];
