/** Tests an integer beyond 2^53 in place of every value of a request, at every provider: it is sent with all digits, or refused (Q11). */
import { describe, expect, test } from 'vitest';
import { SAMPLES, type Sample } from '../hostile/scaling/samples.ts';
import { read, targetsFor, write } from '../hostile/scaling/writers.ts';

const DIGITS = '12345678901234567890';
const MARK = '"<integer>"';

/** Fields that the samples lack but the code reads. Each is replaced by the integer in turn. */
const FIELDS: Readonly<Record<Sample['protocol'], string>> = {
  chat: `max_tokens max_completion_tokens temperature top_p top_k n best_of seed presence_penalty frequency_penalty logprobs
    top_logprobs service_tier user reasoning_effort parallel_tool_calls stream_options thinking reasoning usage output_config
    cache_control safety_identifier thinkingConfig toolConfig generationConfig prefix`,
  messages: 'temperature top_p top_k thinking service_tier container output_format thread',
  responses: `max_output_tokens temperature top_p top_logprobs max_tool_calls truncation parallel_tool_calls store background
    previous_response_id prompt conversation presence_penalty frequency_penalty`,
};

/** The same, inside nested values. */
const OBJECTS = {
  thinking: { type: 'enabled', budget_tokens: 1 },
  reasoning: { max_tokens: 1, effort: 'low' },
};

/** One target for each form of rules. */
const TARGETS = /^like-(?:groq|openrouter|gemini-native|deepseek|mistral|openai|anthropic|tolerant)\//;

/** The JSON text with each of its values replaced by the integer in turn, and the value's path. */
function* withInteger({ protocol, body }: Sample): Generator<[path: string, text: string]> {
  function* places(value: unknown, path: string): Generator<[string, (mark: unknown) => unknown]> {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      const at = `${path}.${key}`;
      const put = (mark: unknown): unknown =>
        Array.isArray(value) ? value.with(Number(key), mark) : { ...value, [key]: mark };
      yield [at, put];
      for (const [further, within] of places(inner, at)) yield [further, (mark) => put(within(mark))];
    }
  }
  for (const field of FIELDS[protocol].split(/\s+/)) yield [field, textOf({ ...body, [field]: '<integer>' })];
  for (const [path, put] of places({ ...OBJECTS, ...body }, '')) {
    // A request without a model has no target.
    if (path !== '.model') yield [path, textOf(put('<integer>'))];
  }
}

function textOf(body: unknown): string {
  return JSON.stringify(body).replace(MARK, DIGITS);
}

describe('Q11 an integer beyond 2^53 in place of any value', () => {
  test.each(SAMPLES.map((sample) => [sample.name, sample] as const))(
    'of a request of %s: sent with its digits or refused, at every provider and under limits',
    async (_, sample) => {
      const faults: string[] = [];
      let sent = 0;
      const targets = targetsFor(sample.route).filter(({ address }) => TARGETS.test(address));
      for (const [path, text] of withInteger(sample)) {
        for (const target of targets) {
          try {
            const known = read(text, sample, () => 0);
            const written = 'request' in known ? await write(known, target) : known;
            if (written.outcome === 'sent') sent++;
            const isObject = written.json?.includes('"rawJSON"') === true;
            if (isObject) faults.push(`${path} at ${target.address}: the integer became an object`);
          } catch (error) {
            faults.push(`${path} at ${target.address}: ${String(error)}`);
          }
        }
      }
      expect(faults).toEqual([]);
      expect(sent).toBeGreaterThan(targets.length);
    },
  );
});
