/** Tests that each row of each provider's table has an effect: a provider with this table accepts what is sent (Q1, Q4-Q6, Q9). */
import { describe, expect, test } from 'vitest';
import { PROFILES, PROVIDERS } from '../../src/providers/index.ts';
import { isOptional } from '../../src/request-translation/dropped-fields.ts';
import type { RequestRules } from '../../src/request-translation/rules.ts';
import type { JsonObject } from '../../src/shared/json.ts';
import { tableRefusal } from '../../tools/simulator/table.ts';
import { rewrite } from './send.ts';

const MESSAGES = [{ role: 'user', content: 'Hello' }];

/** A value of OpenAI's field that is not its default. */
const VALUES: JsonObject = {
  n: 2,
  seed: 7,
  max_tokens: 9,
  max_completion_tokens: 9,
  temperature: 0.5,
  top_p: 0.5,
  logprobs: true,
  top_logprobs: 2,
  presence_penalty: 1,
  frequency_penalty: 1,
  parallel_tool_calls: false,
  tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
};

function bodyWith(field: string): JsonObject {
  const { tools } = VALUES;
  const needsTools = field === 'parallel_tool_calls' || field === 'tool_choice';
  return { messages: MESSAGES, ...(needsTools && { tools }), [field]: VALUES[field] ?? 'x' };
}

type Row = readonly [id: string, field: string, rules: RequestRules];

const tables = new Map([...PROFILES, ...PROVIDERS].map((profile) => [profile.id, profile]));
const rows: Row[] = [...tables.values()].flatMap(({ id, endpoints: { chat } }) => {
  if (chat?.request.kind !== 'chat') return [];
  const { rules } = chat.request;
  return Object.keys(rules.fields).map((field): Row => [id, field, rules]);
});

describe('a row of a table', () => {
  test.each(rows)('%s, %s: a provider with this table accepts what is sent', (id, field, rules) => {
    const rule = rules.fields[field];
    const requested = bodyWith(field);
    const rewritten = rewrite(id, requested);
    if (rewritten.kind === 'error') return expect(rewritten.error.code).toBe('unsupported_parameter');
    const { body, dropped } = rewritten;
    if (rule?.kind === 'renamed') {
      expect(tableRefusal(rules, requested), `the row ${field} renames nothing`).toContain(field);
      expect(body[rule.to], `${field} has to arrive as ${rule.to}`).toEqual(requested[field]);
    }
    const isAboutAnswer = !isOptional(field);
    // A field that changes the output is sent, and the client gets the provider's own error (Q6).
    if (rule?.kind === 'refused' && isAboutAnswer) return;
    expect(tableRefusal(rules, body), `${id} would refuse what the row ${field} makes`).toBeUndefined();
    if (rule?.kind === 'refused' && tableRefusal(rules, requested) !== undefined)
      expect(dropped).toContain(field);
  });

  test('that renames to a field which the same table refuses is found', () => {
    const rules: RequestRules = {
      fields: { seed: { kind: 'renamed', to: 'random_seed' }, random_seed: { kind: 'refused' } },
      messages: { reasoning: [] },
      streamUsage: 'on_request',
    };
    expect(tableRefusal(rules, { seed: 7 })).toBe('Unknown field `seed`: it is `random_seed` here');
    expect(tableRefusal(rules, { random_seed: 7 })).toBe('Unknown field `random_seed`');
  });
});
