/** The probe's requests, one for each top-level field and value that clients send. */

import type { Route } from '../../src/providers/provider.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import {
  callsTool,
  type Effect,
  hasLogprobs,
  hasTwoChoices,
  isJsonObject,
  isLimitedTo,
  lacks,
} from './effects.ts';

export interface ProbeBody {
  /** The name that `--only` matches: `text`, `field/seed`, `message/name`, `turn/reasoning`, `recorded/…`. */
  readonly name: string;
  readonly route: Route;
  /** Without the model, and without an output limit unless the body tests one: the plan adds both. */
  readonly body: JsonObject;
  readonly effect?: Effect;
}

/** The plain request. If it is rejected, no other result means anything. */
export const PLAIN = 'text';

const QUESTION = [{ role: 'user', content: 'Answer with the single word "weir".' }];
const COUNT = [{ role: 'user', content: 'Count from 1 to 100, in digits, separated by spaces.' }];
const JSON_QUESTION = [{ role: 'user', content: 'Answer in JSON: {"colour": the colour of grass}.' }];
const WEATHER_QUESTION = [{ role: 'user', content: 'What is the weather in Oslo?' }];

const SCHEMA = {
  type: 'object',
  properties: { colour: { type: 'string' } },
  required: ['colour'],
  additionalProperties: false,
};
const WEATHER = {
  name: 'weather',
  description: 'The weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
export const TOOLS = [{ type: 'function', function: WEATHER }];
const WEATHER_TOOL = { type: 'function', function: { name: 'weather' } };

function userBody(name: string, more: JsonObject, effect?: Effect): ProbeBody {
  const body = { messages: QUESTION, ...more };
  return { name, route: 'chat', body, ...(effect === undefined ? {} : { effect }) };
}

function field(name: string, more: JsonObject, effect?: Effect): ProbeBody {
  return userBody(`field/${name}`, more, effect);
}

const SHORT = 16;

export const FIELD_BODIES: readonly ProbeBody[] = [
  userBody(PLAIN, {}),
  userBody('stream', { stream: true }),
  userBody('stream-usage', { stream: true, stream_options: { include_usage: true } }),
  field('max_tokens', { messages: COUNT, max_tokens: SHORT }, isLimitedTo(SHORT)),
  field('max_completion_tokens', { messages: COUNT, max_completion_tokens: SHORT }, isLimitedTo(SHORT)),
  field('temperature', { temperature: 0.5 }),
  field('seed', { seed: 7 }),
  field('n=1', { n: 1 }),
  field('n=2', { n: 2 }, hasTwoChoices),
  field('presence_penalty=0', { presence_penalty: 0 }),
  field('presence_penalty=0.5', { presence_penalty: 0.5 }),
  field('frequency_penalty=0', { frequency_penalty: 0 }),
  field('frequency_penalty=0.5', { frequency_penalty: 0.5 }),
  field('stop', { messages: COUNT, stop: ['7'] }, lacks('7')),
  field('logprobs', { logprobs: true, top_logprobs: 2 }, hasLogprobs),
  field('logit_bias', { logit_bias: { '1234': 1 } }),
  field('response_format=text', { response_format: { type: 'text' } }),
  field(
    'response_format=json_object',
    { messages: JSON_QUESTION, response_format: { type: 'json_object' } },
    isJsonObject,
  ),
  field(
    'response_format=json_schema',
    {
      messages: [{ role: 'user', content: 'Which colour has grass?' }],
      response_format: { type: 'json_schema', json_schema: { name: 'grass', strict: true, schema: SCHEMA } },
    },
    isJsonObject,
  ),
  field('tools', { messages: WEATHER_QUESTION, tools: TOOLS }),
  field('tools-stream', { messages: WEATHER_QUESTION, tools: TOOLS, stream: true }),
  field('tool_choice=auto', { messages: WEATHER_QUESTION, tools: TOOLS, tool_choice: 'auto' }),
  field('tool_choice=required', { tools: TOOLS, tool_choice: 'required' }, callsTool),
  field('tool_choice=named', { tools: TOOLS, tool_choice: WEATHER_TOOL }, callsTool),
  field('parallel_tool_calls', { messages: WEATHER_QUESTION, tools: TOOLS, parallel_tool_calls: false }),
  field('parallel_tool_calls-without-tools', { parallel_tool_calls: true }),
  field('reasoning_effort=none', { reasoning_effort: 'none' }),
  field('reasoning_effort=minimal', { reasoning_effort: 'minimal' }),
  field('reasoning_effort=low', { reasoning_effort: 'low' }),
  field('reasoning_effort=medium', { reasoning_effort: 'medium' }),
  field('reasoning_effort=high', { reasoning_effort: 'high' }),
  field('reasoning_effort=xhigh', { reasoning_effort: 'xhigh' }),
  field('thinking=enabled', { thinking: { type: 'enabled' }, stream: true }),
  field('thinking=disabled', { thinking: { type: 'disabled' } }),
  field('reasoning', { reasoning: { effort: 'low' } }),
  field('user', { user: 'weir-probe' }),
  field('metadata', { metadata: { probe: 'weir' } }),
  field('store=false', { store: false }),
  field('store=true', { store: true }),
  field('service_tier', { service_tier: 'auto' }),
  field('verbosity', { verbosity: 'low' }),
  field('safety_identifier', { safety_identifier: 'weir-probe' }),
  field('prompt_cache_key', { prompt_cache_key: 'weir-probe' }),
  field('modalities', { modalities: ['text'] }),
  field('functions', { functions: [WEATHER], function_call: { name: 'weather' } }, callsTool),
  field('unknown', { unheard_of: true }),
  field('null', { stop: null, tool_choice: null, user: null }),
  { name: 'fim', route: 'fim', body: { prompt: 'def double(n):\n    ', suffix: '\n\nprint(double(2))' } },
];
