/** Bedrock's recorded refusals and counts of tokens, through the whole gateway: which error each is, whose fault, and what is counted. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { converseAnswer, json, RoutedGateway, read, settle } from './upstreams.ts';

const FOLDER = join(import.meta.dirname, '..', '..', '..', 'shared', 'requests', 'clouds');
const note = existsSync(FOLDER) ? '' : ' (skipped: ../shared/requests is not here)';
const recorded = existsSync(FOLDER)
  ? readdirSync(FOLDER)
      .filter((name) => /^bedrock--(?:refused|count)-.*\.json$/.test(name))
      .map((name) => {
        const { request, status, response } = decodeObject(readFileSync(join(FOLDER, name), 'utf8')) ?? {};
        return { name, request: objectOf(request), status: Number(status), response: objectOf(response) };
      })
  : [];
const refusals = recorded.filter(({ status, request }) => status >= 400 && request.input === undefined);
/**
 * Not replayed: `bedrock--count-tokens-invoke`, a prompt in the form of InvokeModel, which Weir sends to no model. Claude's prompts are
 * counted in the form of Converse where it is called by Converse; for its own API at Bedrock no counter was found, so they are estimated.
 */
const counts = recorded.filter(({ request }) => objectOf(request.input).converse !== undefined);

const ENV = { AWS_BEARER_TOKEN_BEDROCK: 'key-of-aws', AWS_REGION: 'eu-central-1' };
const NOVA = 'us.amazon.nova-micro-v1:0';
/** Counts are asked under the name without a region. */
const COUNTED = 'amazon.nova-micro-v1:0';
const KIMI = 'moonshot.kimi-k2-thinking';
const WHOLE = converseAnswer();

/** By AWS's sentence, so that other recordings of the same refusal have the same. */
const MEANINGS: readonly (readonly [RegExp, status: number, code: string, fault: string])[] = [
  [/security token|API Key/, 502, 'upstream_credential', 'deployment'],
  [/identifier is invalid|on-demand throughput/, 400, 'model_not_found', 'caller'],
  [/end of its life/, 404, 'model_not_found', 'caller'],
  [/exceeds maximum length|too long/, 400, 'invalid_request', 'caller'],
];

describe.skipIf(note !== '')(`Bedrock’s recorded refusals${note}`, () => {
  test('there are some', () => expect(refusals.length).toBeGreaterThan(5));

  describe.each(refusals.map((one) => [one.name, one] as const))('%s', (_, { status, response }) => {
    const said = textOf(response.message);
    const refused = { kind: 'refuse', status, body: JSON.stringify(response) } as const;
    const [, expected, code, fault] = MEANINGS.find(([words]) => words.test(said)) ?? [];

    test.each([true, false])(
      'E1 E6 streamed: %s: its own error, whose fault it is, and the sentence',
      async (stream) => {
        const routed = new RoutedGateway({ [NOVA]: [refused] }, ENV);
        const got = await read(await routed.ask({ model: `bedrock/${NOVA}`, stream }));
        await settle();
        expect([got.status, got.error?.code]).toEqual([expected, code]);
        if (code !== 'upstream_credential') expect(got.error?.message).toBe(`AWS Bedrock: ${said}`);
        expect(routed.records).toMatchObject([{ status: 'failed', fault }]);
      },
    );

    test('R1 another target answers, where the alias says so of a prompt that is too long', async () => {
      const first = { model: `bedrock/${NOVA}`, on: ['context_length'] };
      const env = { ...ENV, ALIASES: { both: [first, `bedrock/${KIMI}`] } };
      const routed = new RoutedGateway({ [NOVA]: [refused], [KIMI]: [WHOLE] }, env);
      expect(await read(await routed.ask({ model: 'both' }))).toMatchObject({ status: 200, text: 'Here.' });
    });
  });
});

describe.skipIf(note !== '')(`Bedrock’s recorded counts${note}`, () => {
  test.each(counts.map((one) => [one.name, one] as const))(
    'Q12 %s: the prompt goes up as it was recorded, and the count is Bedrock’s',
    async (_, { request, response }) => {
      const converse = objectOf(objectOf(request.input).converse);
      const routed = new RoutedGateway({ [COUNTED]: [json(response)] }, ENV);
      const specs = objectsOf(objectOf(converse.toolConfig).tools).map(({ toolSpec }) => objectOf(toolSpec));
      const answer = await routed.ask(
        {
          model: `bedrock/${NOVA}`,
          max_tokens: 64,
          messages: objectsOf(converse.messages).map(({ role, content }) => ({
            role: textOf(role),
            content: objectsOf(content).map(({ text }) => ({ type: 'text', text: textOf(text) })),
          })),
          ...(specs.length === 0
            ? {}
            : {
                tools: specs.map(({ name, description, inputSchema }) => ({
                  ...{ name: textOf(name), description: textOf(description) },
                  input_schema: objectOf(objectOf(inputSchema).json),
                })),
              }),
        },
        {},
        '/v1/messages/count_tokens',
      );
      expect([answer.headers.get('x-weir-estimated'), await answer.json()]).toEqual([
        'false',
        { input_tokens: response.inputTokens },
      ]);
      const { system, toolConfig, ...prompt } = converse;
      const tools = specs.length === 0 ? {} : { toolConfig: { tools: objectOf(toolConfig).tools } };
      expect(system ?? []).toEqual([]);
      expect(routed.requests.map(({ body }) => body)).toEqual([
        { input: { converse: { ...prompt, ...tools } } },
      ]);
    },
  );

  test('Q12 a model for which Bedrock counts nothing: an estimate', async () => {
    const refused = recorded.find(({ name }) => name.includes('refused-count'));
    const body = JSON.stringify(refused?.response);
    const routed = new RoutedGateway(
      { [COUNTED]: [{ kind: 'refuse', status: refused?.status ?? 0, body }] },
      ENV,
    );
    const fields = { model: `bedrock/${NOVA}`, max_tokens: 64 };
    const answer = await routed.ask(fields, {}, '/v1/messages/count_tokens');
    expect([answer.status, answer.headers.get('x-weir-estimated')]).toEqual([200, 'true']);
  });
});
