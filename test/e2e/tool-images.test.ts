/** Tests the SDKs with an image in a tool result, at providers that accept it there and at those that refuse it (Q15). */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, describe, expect, test } from 'vitest';
import { isObject, type Json, type JsonObject, objectsOf } from '../../tools/simulator/json.ts';
import { compatibleScenes } from '../../tools/simulator/scenes.ts';
import { startGateway } from './gateway.ts';

/** `chat` and `seek` are providers with Responses, without it. */
const gateway = await startGateway({
  vars: (url) => ({
    PROVIDERS: JSON.stringify({
      ...Object.fromEntries(
        compatibleScenes.map(({ id, profile: like = id }) => [
          id,
          { base_url: `${url}/${id}/v1`, api_key: 'COMPATIBLE_SECRET', like },
        ]),
      ),
      compatible: { base_url: `${url}/compatible/v1`, api_key: 'COMPATIBLE_SECRET' },
      seek: { base_url: `${url}/deepseek`, api_key: 'COMPATIBLE_SECRET', like: 'deepseek' },
      chat: { base_url: `${url}/openai/v1`, api_key: 'COMPATIBLE_SECRET', like: 'openai' },
    }),
  }),
});
afterAll(() => gateway[Symbol.asyncDispose]());

const PNG = 'iVBORw0KGgo=';
const URL_OF_PNG = `data:image/png;base64,${PNG}`;
const PARAMETERS = { type: 'object' as const, properties: {} };

type Send = (model: string, isStreamed: boolean) => Promise<number>;

/** @returns how many texts and calls the final message has, as the SDK reads it */
async function sendMessages(model: string, isStreamed: boolean): Promise<number> {
  const client = new Anthropic({ apiKey: 'unused', baseURL: gateway.url, maxRetries: 0 });
  const image = {
    type: 'image' as const,
    source: { type: 'base64' as const, media_type: 'image/png' as const, data: PNG },
  };
  const body: Anthropic.MessageCreateParamsNonStreaming = {
    model,
    max_tokens: 4000,
    tools: [{ name: 'look', input_schema: PARAMETERS }],
    messages: [
      { role: 'user', content: 'Look' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [image] }] },
    ],
  };
  const message = isStreamed
    ? await client.messages.stream(body).finalMessage()
    : await client.messages.create(body);
  // The simulator answers a user's message with the next call.
  expect(['end_turn', 'tool_use']).toContain(message.stop_reason);
  return message.content.filter(({ type }) => type === 'text' || type === 'tool_use').length;
}

async function sendResponses(model: string, isStreamed: boolean): Promise<number> {
  const client = new OpenAI({ apiKey: 'unused', baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  const body: OpenAI.Responses.ResponseCreateParamsNonStreaming = {
    model,
    store: false,
    tools: [{ type: 'function', name: 'look', parameters: PARAMETERS, strict: false }],
    input: [
      { role: 'user', content: 'Look' },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
      {
        type: 'function_call_output',
        call_id: 'call_1',
        output: [{ type: 'input_image', image_url: URL_OF_PNG, detail: 'auto' }],
      },
    ],
  };
  const response = isStreamed
    ? await client.responses.stream({ ...body, stream: true }).finalResponse()
    : await client.responses.create(body);
  expect(response.status).toBe('completed');
  return response.output.filter(({ type }) => type === 'message' || type === 'function_call').length;
}

/** In what the provider received: whether the image is in a result, or beside it. */
function placesOf(value: Json | undefined, isResult = false): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => placesOf(item, isResult));
  if (!isObject(value)) return [];
  const isImage = ['image', 'image_url', 'input_image'].includes(String(value.type)) || 'inlineData' in value;
  if (isImage) return [isResult ? 'in the result' : 'behind it'];
  const isOwn = isResult || value.role === 'tool' || /result|_output$/.test(String(value.type));
  return Object.entries(value).flatMap(([key, member]) =>
    placesOf(member, isOwn || key === 'functionResponse'),
  );
}

const PLACES: readonly (readonly [model: string, place: string])[] = [
  ['chat/gpt-4o-mini', 'behind it'],
  ['openai/gpt-6.1-terra', 'in the result'],
  ['seek/deepseek-flash', 'behind it'],
  ['cerebras/gpt-oss-120b', 'behind it'],
  ['groq/openai/gpt-oss-120b', 'behind it'],
  ['mistral/mistral-small-latest', 'behind it'],
  ['openrouter/moonshotai/kimi-k2.5', 'in the result'],
  ['moonshot/kimi-k3', 'in the result'],
  ['xai/grok-4.7', 'behind it'],
  ['anthropic/claude-sonnet-5', 'in the result'],
  ['gemini/gemini-3.8-flash', 'in the result'],
  ['compatible/openai/gpt-oss-20b', 'behind it'],
];

const CLIENTS: readonly (readonly [client: string, send: Send])[] = [
  ['Messages', sendMessages],
  ['Responses', sendResponses],
];

describe.each(CLIENTS)('%s', (_, send) => {
  describe.each(PLACES)('at %s', (model, place) => {
    test.each([true, false])(`Q15 streamed %s: the image is ${place}`, async (isStreamed) => {
      const before = gateway.simulator.requests.length;
      expect(await send(model, isStreamed)).toBeGreaterThan(0);
      const requests = gateway.simulator.requests.slice(before);
      expect(requests).toHaveLength(1);
      const { messages, input, contents } = (requests[0]?.body ?? {}) as JsonObject;
      const turns = objectsOf(messages ?? input ?? contents);
      expect(placesOf(turns)).toEqual([place]);
    });
  });
});
