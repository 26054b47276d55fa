/** Requests that Bedrock's Converse took, as a client of chat says the same: what leaves Weir is what was recorded. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeObject, type JsonObject, objectOf, objectsOf, textOf } from '../../tools/simulator/json.ts';
import { converseAnswer, RoutedGateway, read } from './upstreams.ts';

const STREAMS = join(import.meta.dirname, '..', '..', '..', 'shared', 'streams');
const note = existsSync(STREAMS) ? '' : ' (skipped: ../shared/streams is not here)';
const recorded = ['bedrock', 'whole'].flatMap((folder) => {
  const path = join(STREAMS, folder);
  if (!existsSync(path)) return [];
  return readdirSync(path)
    .filter((name) => /^bedrock--.*\.request\.json$/.test(name))
    .map((name) => ({ name, body: decodeObject(readFileSync(join(path, name), 'utf8')) ?? {} }));
});

/** The models of the recordings, by the words of their names. */
const MODELS: readonly (readonly [RegExp, string])[] = [
  [/claude3/, 'anthropic.claude-3-sonnet-20240229-v1:0'],
  [/nova2|nova-code/, 'us.amazon.nova-2-lite-v1:0'],
  [/nova|titan|guardrail|tier|gateway/, 'us.amazon.nova-micro-v1:0'],
  [/gpt-oss/, 'openai.gpt-oss-120b-1:0'],
  [/kimi/, 'moonshot.kimi-k2-thinking'],
  [/minimax/, 'minimax.minimax-m2'],
  [/deepseek/, 'us.deepseek.r1-v1:0'],
  [/mistral/, 'mistral.mistral-large-3-675b-instruct'],
  [/llama/, 'us.meta.llama4-maverick-17b-instruct-v1:0'],
  [/writer/, 'us.writer.palmyra-x4-v1:0'],
  [/./, 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'],
];

const WHOLE = converseAnswer();

type Fields = Record<string, JsonObject[string]>;

/** The same for a client of chat. */
function chatOf(body: JsonObject): JsonObject {
  const { messages, system, inferenceConfig, toolConfig, serviceTier, outputConfig, ...own } = body;
  const { maxTokens, temperature, topP, stopSequences } = objectOf(inferenceConfig);
  const { tools, toolChoice } = objectOf(toolConfig);
  const { type: tier } = objectOf(serviceTier);
  const schema = objectOf(objectOf(objectOf(objectOf(outputConfig).textFormat).structure).jsonSchema);
  const fields: Fields = {
    ...own,
    messages: [
      ...(objectsOf(system).length === 0 ? [] : [{ role: 'system', content: partsOf(objectsOf(system)) }]),
      ...objectsOf(messages).flatMap(messagesOf),
    ],
    max_tokens: maxTokens,
    temperature,
    top_p: topP,
    stop: stopSequences,
    service_tier: tier,
    tools: objectsOf(tools).length === 0 ? undefined : toolsOf(objectsOf(tools)),
    tool_choice: choiceOf(objectOf(toolChoice)),
  };
  if (schema.schema !== undefined)
    fields.response_format = {
      type: 'json_schema',
      json_schema: { ...schema, schema: decodeObject(textOf(schema.schema)) ?? {} },
    };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function partsOf(blocks: readonly JsonObject[]): JsonObject[] {
  const parts: Fields[] = [];
  for (const block of blocks) {
    const { text, image, document, cachePoint } = block;
    const { format, source } = objectOf(image);
    const file = objectOf(document);
    const last = parts.at(-1);
    if (cachePoint !== undefined) {
      const { ttl } = objectOf(cachePoint);
      if (last) last.cache_control = { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) };
    } else if (image !== undefined)
      parts.push({
        type: 'image_url',
        image_url: { url: `data:image/${textOf(format)};base64,${textOf(objectOf(source).bytes)}` },
      });
    else if (document !== undefined) {
      const { bytes, text: content } = objectOf(file.source);
      const data = content === undefined ? textOf(bytes) : Buffer.from(textOf(content)).toString('base64');
      parts.push({
        type: 'file',
        file: {
          filename: textOf(file.name),
          file_data: `data:${file.format === 'txt' ? 'text/plain' : 'application/pdf'};base64,${data}`,
        },
        ...(file.citations === undefined ? {} : { citations: file.citations }),
      });
    } else parts.push(text === undefined ? { ...block } : { type: 'text', text });
  }
  return parts;
}

function messagesOf({ role, content }: JsonObject): JsonObject[] {
  const blocks = objectsOf(content);
  const others = blocks.filter(
    (block) => !['toolUse', 'toolResult', 'reasoningContent'].some((k) => k in block),
  );
  if (role === 'assistant') {
    const calls = blocks.flatMap(({ toolUse }) => (toolUse === undefined ? [] : [objectOf(toolUse)]));
    const details = blocks.flatMap(({ reasoningContent }, index): JsonObject[] => {
      const { reasoningText, redactedContent } = objectOf(reasoningContent);
      const { text, signature } = objectOf(reasoningText);
      const [id, format] = [`weir1:aws:${index}`, 'anthropic-claude-v1'];
      if (redactedContent !== undefined) {
        const data = Buffer.from(textOf(redactedContent), 'base64').toString();
        return [{ type: 'reasoning.encrypted', data, id, format, index }];
      }
      if (reasoningText === undefined) return [];
      const signed = signature === undefined ? {} : { signature, id: `${id}-text`, format };
      return [{ type: 'reasoning.text', text: textOf(text), ...signed, index }];
    });
    return [
      {
        role: 'assistant',
        content: partsOf(others),
        ...(details.length === 0 ? {} : { reasoning_details: details }),
        ...(calls.length === 0
          ? {}
          : {
              tool_calls: calls.map(({ toolUseId, name, input }) => ({
                id: textOf(toolUseId),
                type: 'function',
                function: { name: textOf(name), arguments: JSON.stringify(input) },
              })),
            }),
      },
    ];
  }
  const results = blocks.flatMap(({ toolResult }) =>
    toolResult === undefined ? [] : [objectOf(toolResult)],
  );
  return [
    ...results.map((result) => ({
      role: 'tool',
      tool_call_id: textOf(result.toolUseId),
      content: partsOf(
        objectsOf(result.content).map((one) =>
          one.json === undefined ? one : { text: JSON.stringify(one.json) },
        ),
      ),
    })),
    ...(others.length === 0 ? [] : [{ role: 'user', content: partsOf(others) }]),
  ];
}

function toolsOf(tools: readonly JsonObject[]): JsonObject[] {
  return tools.map((tool) => {
    const { name, description, inputSchema, strict } = objectOf(tool.toolSpec);
    if (tool.toolSpec === undefined) return tool;
    return {
      type: 'function',
      function: {
        name: textOf(name),
        ...(description === undefined ? {} : { description }),
        ...(strict === undefined ? {} : { strict }),
        parameters: objectOf(inputSchema).json ?? {},
      },
    };
  });
}

function choiceOf({ any, tool }: JsonObject): JsonObject[string] | undefined {
  if (any !== undefined) return 'required';
  return tool === undefined
    ? undefined
    : { type: 'function', function: { name: textOf(objectOf(tool).name) } };
}

/** What says nothing is left out: empty lists, `auto`, `success`. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([key, own]): [string, unknown][] => {
    const isEmpty =
      (key === 'system' && Array.isArray(own) && own.length === 0) ||
      (/^(?:inferenceConfig|additionalModelRequestFields)$/.test(key) &&
        Object.keys(objectOf(own)).length === 0) ||
      (key === 'toolChoice' && objectOf(own).auto !== undefined) ||
      (key === 'status' && own === 'success');
    if (isEmpty) return [];
    // Its spaces differ.
    return [[key, key === 'schema' && typeof own === 'string' ? JSON.parse(own) : plain(own)]];
  });
  return Object.fromEntries(entries);
}

/** The turns of a role that follow each other are one. Blank texts are not sent, but for one between a text document and a cache point. */
function joinedTurns({ messages, ...body }: JsonObject): JsonObject {
  const turns: { role: unknown; content: JsonObject[] }[] = [];
  for (const { role, content } of objectsOf(messages)) {
    const isBlank = (block: JsonObject | undefined) =>
      typeof block?.text === 'string' && block.text.trim() === '';
    const blocks = objectsOf(content).flatMap((block, at, all) => {
      if (!isBlank(block)) return [block];
      const { format = 'pdf' } = objectOf(all[at - 1]?.document);
      return format !== 'pdf' && all[at + 1]?.cachePoint ? [{ text: 'See the attached document.' }] : [];
    });
    const last = turns.at(-1);
    if (last?.role === role) last?.content.push(...blocks);
    else turns.push({ role, content: blocks });
  }
  return { ...body, messages: turns as JsonObject[] };
}

describe.skipIf(note !== '')(`A11 recorded requests of Converse${note}`, () => {
  test.each(recorded.map((one) => [one.name, one] as const))('%s', async (name, { body }) => {
    const model = MODELS.find(([words]) => words.test(name))?.[1] ?? '';
    const entry = {
      base_url: 'https://aws.example',
      api_key: 'K',
      like: 'bedrock',
      api: 'bedrock-converse',
    };
    const env = { K: 'k', PROVIDERS: { aws: entry }, PROMPT_CACHE: 'off' };
    const routed = new RoutedGateway({ [model]: [WHOLE] }, env);
    const got = await read(await routed.ask({ model: `aws/${model}`, ...chatOf(body) }));
    expect([got.status, got.headers.get('x-weir-dropped')]).toEqual([200, null]);
    const sent = { ...routed.requests[0]?.body };
    // Weir always says Claude's limit.
    const { maxTokens, ...inferenceConfig } = objectOf(sent.inferenceConfig);
    const isOwnLimit = objectOf(body.inferenceConfig).maxTokens === undefined && /claude/.test(model);
    expect(plain(isOwnLimit ? { ...sent, inferenceConfig } : sent)).toEqual(plain(joinedTurns(body)));
  });
});
