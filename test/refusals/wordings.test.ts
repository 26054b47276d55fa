/** Further ways in which hosts say the same, and in which they carry it. */
import { describe, expect, test } from 'vitest';
import { readUpstreamRefusal } from '../../src/canonical/upstream-error.ts';
import { readApiStatement } from '../../src/fitting/api-statements.ts';
import { changeOf } from '../../src/fitting/fit.ts';
import { readStatements } from '../../src/fitting/statements.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { PLAIN_FORM } from '../fitting/plain-form.ts';

function mended(text: string, sent: JsonObject): JsonObject {
  const { message = '', code = '', param } = readUpstreamRefusal(text);
  let body = sent;
  for (const { finding } of readStatements({ message, code, field: param }, { body, betas: [] })) {
    body = changeOf(finding, body, { unsupported: 'auto', form: PLAIN_FORM })?.body ?? body;
  }
  return body;
}

describe('Z2 a wording', () => {
  test.each([
    "temperature isn't available for this model",
    'temperature is not configurable',
    'temperature is no longer accepted',
    'The temperature parameter has been removed',
    'param temperature not supported',
    'Bad parameter: temperature',
    'temperature cannot be changed for this model',
    'temperature isn\u2019t supported',
    'temperature is unavailable',
  ])('of a field that is refused: %s', (text) => {
    expect(mended(text, { model: 'm', temperature: 0.5 })).toEqual({ model: 'm' });
  });

  test.each([
    'temperature is fixed at 1',
    'temperature only supports 1',
    'This model only supports temperature=1',
    'temperature: only 1 is accepted',
    'temperature must always be 1',
  ])('of a single value: %s', (text) => {
    expect(mended(text, { model: 'm', temperature: 0.5 })).toEqual({ model: 'm', temperature: 1 });
  });

  test.each([
    ['chat', 'responses', 'Please use the /v1/responses endpoint'],
    ['chat', 'responses', 'Use the responses endpoint for this model'],
    ['chat', 'responses', 'gpt-9 is only available through the Responses API'],
    ['chat', 'responses', 'model "gpt-9" is not accessible via the /chat/completions endpoint'],
    ['chat', 'responses', 'This model is only accessible via v1/responses.'],
    ['responses', 'chat', 'Please use the /v1/chat/completions endpoint'],
    ['responses', 'chat', 'This model is only available through the chat completions API'],
  ] as const)('by %s that asks for %s: %s', (on, api, message) => {
    const refusal = { status: 400, code: '', message, kind: null, field: undefined };
    expect(readApiStatement(refusal, on)?.change).toMatchObject({ kind: 'api', api });
  });

  test.each([
    'The model sent no response, please use another prompt',
    'Your chat completions are not available in this region',
    'Too many responses were requested',
  ])('about no API: %s', (message) => {
    const refusal = { status: 400, code: '', message, kind: null, field: undefined };
    expect([readApiStatement(refusal, 'chat'), readApiStatement(refusal, 'responses')]).toEqual([null, null]);
  });

  test.each([
    [{ enable_thinking: true }, { enable_thinking: false }],
    [
      { chat_template_kwargs: { enable_thinking: true, other: 1 } },
      { chat_template_kwargs: { enable_thinking: false, other: 1 } },
    ],
  ])('of a forced tool while %j', (sent, expected) => {
    const text =
      'The tool_choice parameter does not support being set to required or object in thinking mode';
    const forced = { model: 'm', tool_choice: 'required' };
    expect(mended(text, { ...forced, ...sent })).toEqual({ ...forced, ...expected });
  });
});

describe('Z2 an envelope', () => {
  const message = "'temperature' is not supported with this model";

  test.each<[string, JsonObject | string]>([
    ['param', { error: { message: 'Invalid request', param: message } }],
    ['details', { error: { message: 'Invalid request', details: message } }],
    ['a list of details', { error: { message: 'Invalid request', details: [{ message }] } }],
    ['an object of details', { message: 'Invalid request', details: { message } }],
    ['errors', { message: 'Bad request', errors: [message] }],
    ['objects of errors', { message: 'Bad request', errors: [{ message }] }],
    [
      'errors without a message',
      { errors: [{ loc: ['body', 'temperature'], msg: 'Extra inputs are not permitted' }] },
    ],
    [
      'the error of LiteLLM',
      `litellm.BadRequestError: OpenAIException - ${JSON.stringify({ error: { message } })}`,
    ],
    [
      'the error of LiteLLM, and more',
      `litellm.BadRequestError: AzureException - ${JSON.stringify({ error: { message } })}. Received Model Group=m\nAvailable Model Group Fallbacks=None`,
    ],
    [
      'the error of LiteLLM in an error',
      { error: { message: `litellm.BadRequestError: OpenAIException - ${message}`, code: '400' } },
    ],
  ])('with the sentence in %s', (_, body) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    expect(mended(text, { model: 'm', temperature: 0.5 })).toEqual({ model: 'm' });
  });
});
