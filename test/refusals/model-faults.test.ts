/** What the model did wrong is no refusal of the request: nothing changes, and nothing is learned. */
import { describe, expect, test } from 'vitest';
import { findUpstreamError } from '../../src/canonical/upstream-error.ts';
import { classifyError, classifyRefusal } from '../../src/upstream/errors.ts';
import { REFUSAL_TEXTS } from '../../tools/simulator/refusal-texts.ts';

const UPSTREAM = { name: 'Acme', secret: 'key-of-acme', refusals: undefined, callerPays: false };

function kindOf(body: string) {
  return classifyRefusal({ status: 400, body }, UPSTREAM).refusal?.kind;
}

const ADDITIONAL = "additionalProperties 'foo' not allowed";
const MESSAGES: readonly string[] = [
  `Tool call validation failed: tool call validation failed: parameters for tool get_it did not match schema: errors: [missing properties: 'name', ${ADDITIONAL}]`,
  "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
  "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.",
  'Tool choice is required, but model did not call a tool',
  "Tool call validation failed: attempted to call tool 'temperature' which was not in request.tools",
  `The model generated a tool call with invalid arguments: ${ADDITIONAL}`,
  `The model produced invalid output: ${ADDITIONAL}`,
  `The model's response did not match the schema: 'pattern' is not valid`,
  `Model output does not conform to the response_format schema: 'minLength' is not allowed`,
  `The output did not match its schema: "maxLength" unexpected`,
  `The generated JSON does not satisfy the schema: ${ADDITIONAL}`,
  'Generated tool call arguments are invalid: format is not supported',
  "The assistant's answer was not valid against the tool's parameters: 'temperature' is not allowed",
  `Could not parse the model's output: unknown field "temperature"`,
  "Error validating tool call arguments: Additional properties are not allowed ('top_k' was unexpected)",
];

/** The same error, as hosts pass it on. */
const ENVELOPES: readonly ((error: object) => string)[] = [
  (error) => JSON.stringify({ error }),
  (error) => JSON.stringify([{ error }]),
  (error) => JSON.stringify(error),
  (error) => JSON.stringify({ error: { message: JSON.stringify({ error }), code: 400 } }),
  (error) => JSON.stringify({ object: 'error', message: JSON.stringify({ error }) }),
  (error) =>
    JSON.stringify({
      error: { message: 'Provider returned error', code: 400, metadata: { raw: JSON.stringify({ error }) } },
    }),
  (error) => `litellm.BadRequestError: GroqException - ${JSON.stringify({ error })}`,
];

describe('Z1 what the model did wrong', () => {
  test.each(MESSAGES.flatMap((message) => ENVELOPES.map((envelope, i) => [i, message, envelope] as const)))(
    'is no refusal of the request, in envelope %i: %s',
    (_, message, envelope) => {
      expect(kindOf(envelope({ message, type: 'invalid_request_error' }))).toBe('invalid_output');
    },
  );

  test.each(ENVELOPES.map((envelope, i) => [i, envelope] as const))(
    'is known by its code and by what the model wrote, whatever the words, in envelope %i',
    (_, envelope) => {
      const message = `Odd words: ${ADDITIONAL} in tool`;
      expect(kindOf(envelope({ message, code: 'tool_use_failed' }))).toBe('invalid_output');
      expect(kindOf(envelope({ message, failed_generation: '{"foo":1}' }))).toBe('invalid_output');
      expect(kindOf(envelope({ message }))).toBeNull();
    },
  );

  test('is known in an error event', () => {
    for (const error of [{ code: 'tool_use_failed' }, { failed_generation: '' }]) {
      const event = findUpstreamError({
        error: { message: `Odd: ${ADDITIONAL}`, status_code: 400, ...error },
      });
      expect(event && classifyError(event, UPSTREAM).refusal?.kind).toBe('invalid_output');
    }
  });

  test.each(REFUSAL_TEXTS.filter(({ mended }) => mended !== null).map(({ name, text }) => [name, text]))(
    'is not what %s says',
    (_, text) => {
      expect(kindOf(text)).not.toBe('invalid_output');
    },
  );
});
