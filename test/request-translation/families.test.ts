/** Tests every family of every provider's table: it has an answer to each wish of a client, in its own words (Q14). */
import { describe, expect, test } from 'vitest';
import { ApiMemory } from '../../src/fitting/learned.ts';
import { SHIPPED_PRICES } from '../../src/metering/pricing/price-book.ts';
import { PROFILES, PROVIDERS } from '../../src/providers/index.ts';
import { reasoningFamily } from '../../src/request-translation/effort.ts';
import type { ReasoningFamily, RequestRules } from '../../src/request-translation/rules.ts';
import { chooseApi } from '../../src/routing/api-choice.ts';
import { isObject, type JsonObject, objectOf } from '../../src/shared/json.ts';
import { rewrite, TOOL } from './send.ts';

interface Table {
  readonly id: string;
  readonly rules: RequestRules;
  readonly families: readonly ReasoningFamily[];
}

const profiles = new Map([...PROFILES, ...PROVIDERS].map((profile) => [profile.id, profile]));
const tables: Table[] = [...profiles.values()].flatMap(({ id, endpoints: { chat } }) => {
  if (chat?.request.kind !== 'chat') return [];
  const { rules } = chat.request;
  return [{ id: id === 'gemini' ? 'like gemini' : id, rules, families: rules.effort?.families ?? [] }];
});

/** A name that a glob matches: one of today for `kimi-k3*`, one of tomorrow for `kimi-*`. */
const nameOf = (glob: string) => glob.replaceAll('*', glob.endsWith('-*') ? 'next' : '');

type Row = readonly [provider: string, model: string, family: ReasoningFamily, rules: RequestRules];
const rows: Row[] = tables.flatMap(({ id, rules, families }) =>
  families.flatMap((family) =>
    (family.models ?? ['released-tomorrow'])
      .map(nameOf)
      .filter((model) => model !== '' && reasoningFamily(families, model) === family)
      .map((model): Row => [id, model, family, rules]),
  ),
);

const WISHES: Readonly<Record<string, JsonObject>> = {
  off: { reasoning_effort: 'none' },
  'off as Claude Code has it': { thinking: { type: 'disabled' } },
  lowest: { reasoning_effort: 'minimal' },
  highest: { reasoning_effort: 'max' },
  'a budget': { thinking: { type: 'enabled', budget_tokens: 20_000 } },
  'a forced tool': { tools: [TOOL], tool_choice: 'required', reasoning_effort: 'high' },
  sampling: { temperature: 0.3, top_p: 0.9 },
};

/** What is sent, and what is reported of it. */
function rewriteBody(provider: string, body: JsonObject): JsonObject {
  const rewritten = rewrite(provider, body);
  if (rewritten.kind === 'error') return { error: rewritten.error.message };
  return { ...rewritten.body, changed: rewritten.changed, dropped: rewritten.dropped };
}

/** What the family would refuse of a body. */
function problemIn(
  body: JsonObject,
  { efforts, thinking }: ReasoningFamily,
  rules: RequestRules,
): string | null {
  const effort = body.reasoning_effort ?? objectOf(body.reasoning).effort;
  const { type } = objectOf(body.thinking);
  if (typeof effort === 'string' && !efforts.includes(effort)) return `effort ${effort}`;
  if (type === 'disabled' && !efforts.includes('none')) return 'disabled';
  if (isObject(body.thinking) && type !== 'disabled' && thinking?.every((known) => known !== type))
    return `${type}`;
  if (isObject(body.thinking) && rules.effort?.takes.includes('thinking') !== true)
    return 'a foreign thinking';
  const refused = ['temperature', 'top_p'].find((field) => {
    const rule = rules.fields[field];
    return body[field] !== undefined && rule?.kind === 'refused' && (rule.when?.(body) ?? true);
  });
  return refused ?? null;
}

describe('Q14 every family that reasons', () => {
  test.each(rows.filter(([, , { reasons }]) => reasons !== 'never'))(
    '%s, %s',
    (provider, model, family, rules) => {
      for (const [wish, fields] of Object.entries(WISHES)) {
        const rewritten = rewrite(provider, { model, ...fields });
        if (rewritten.kind === 'error') throw new Error(`${wish}: ${rewritten.error.message}`);
        const { body, changed, dropped } = rewritten;
        expect(problemIn(body, family, rules), wish).toBeNull();
        const isKept = Object.keys(fields).every(
          (field) => JSON.stringify(body[field]) === JSON.stringify(fields[field]),
        );
        const isOff = wish.startsWith('off') && family.efforts.includes('none');
        const isBudget = wish === 'a budget';
        if (!isKept && !isOff && !isBudget) expect([...changed, ...dropped], wish).not.toEqual([]);
      }
    },
  );
});

describe('Q14 a model behind another gateway', () => {
  const NATIVE = [
    ['anthropic', 'claude-haiku-4-5'],
    ['anthropic', 'claude-opus-5'],
  ] as const;
  const RETIRED = [['deepseek', 'deepseek-chat']] as const;
  // Gemini's own API has the name in its path, so there is none with a prefix.
  const models = [...rows.map(([id, model]) => [id, model] as const), ...NATIVE, ...RETIRED];

  test.each(models)('%s, %s: prefixes change nothing of the request', (provider, model) => {
    const messages = [{ role: 'user', content: 'Hi' }];
    for (const [wish, fields] of Object.entries(WISHES)) {
      const sent = (name: string) => {
        const { model: _, ...rewritten } = rewriteBody(provider, { model: name, messages, ...fields });
        return rewritten;
      };
      expect(sent(`vendor/${model}`), wish).toEqual(sent(model));
      expect(sent(`gateway/vendor/${model}`), wish).toEqual(sent(model));
    }
  });

  test('OpenAI: they change nothing of the API that is called', () => {
    const openai = PROVIDERS.find(({ id }) => id === 'openai');
    if (openai === undefined) throw new Error('There is no OpenAI');
    const apiOf = (model: string) => {
      const request = { fields: { model, tools: [TOOL] }, turns: null };
      return chooseApi(
        { provider: openai, model, makerModel: model, request, forced: null, keyId: 'k' },
        new ApiMemory(),
        0,
      );
    };
    for (const model of ['gpt-5.6-terra', 'gpt-4o', 'o3-pro', 'gpt-oss-120b', 'gpt-7']) {
      expect(apiOf(`openai/${model}`), model).toBe(apiOf(model));
    }
    expect(['gpt-5.6-terra', 'gpt-4o'].map((model) => apiOf(`openai/${model}`))).toEqual([
      'responses',
      'chat',
    ]);
  });
});

describe('a model that appears in one table appears in all that need it', () => {
  const facts = tables.flatMap(({ id, families }) => {
    const { modelTraits = [] } = profiles.get(id.replace('like ', '')) ?? {};
    return modelTraits.flatMap(({ models, supports }) =>
      models.map((glob) => [id, nameOf(glob), supports?.reasoning, families] as const),
    );
  });

  test.each(facts.filter(([, , reasoning]) => reasoning !== undefined))(
    'facts of %s, %s: reasons as its family says: %s',
    (_, model, reasoning, families) => {
      const family = reasoningFamily(families, model);
      expect(family !== undefined && family.reasons !== 'never').toBe(reasoning);
    },
  );

  const withFamilies = tables.filter(({ families }) => families.length > 0);
  const priced = withFamilies.flatMap(({ id, families }) =>
    SHIPPED_PRICES.all()
      .filter(({ provider, models }) => provider === id && !models.some((name) => /embed/.test(name)))
      .flatMap(({ models }) => models.filter((name) => !name.includes('*')))
      .map((model) => [id, model, families] as const),
  );

  /** They have no row for models without an effort of their own. */
  const OF_MANY_MAKERS = ['groq', 'azure'];
  test.each(priced)('%s, %s has a price, and a family', (id, model, families) => {
    if (!OF_MANY_MAKERS.includes(id)) expect(reasoningFamily(families, model)).toBeDefined();
  });
});
