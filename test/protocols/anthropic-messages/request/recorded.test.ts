/** Tests that a chat request with the same meaning is translated into each recorded Messages request (A2). */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type Json, type JsonObject, listOf, objectOf } from '../../../../tools/conformance/contract/json.ts';
import { send } from '../../../request-translation/send.ts';

const FOLDER = fileURLToPath(new URL('../../../../../shared/streams/', import.meta.url).href);
const note = existsSync(FOLDER) ? '' : ' (skipped: ../shared/streams is not here)';
const names = existsSync(FOLDER)
  ? readdirSync(FOLDER).filter((name) => /^anthropic--.*\.request\.json$/.test(name))
  : [];

/** The chat request for a recorded one: an independent translation, written from OpenAI's document. */
function chatOf(body: JsonObject): JsonObject {
  const {
    system,
    messages,
    tools,
    tool_choice,
    stop_sequences,
    metadata,
    anthropic_version: _,
    ...rest
  } = body;
  const leading = system === undefined ? [] : [{ role: 'system', content: partsOf(system) }];
  const choice = objectOf(tool_choice);
  const isSerial = choice.disable_parallel_tool_use === true;
  return {
    ...rest,
    messages: [...leading, ...listOf(messages).map(objectOf).flatMap(messagesOf)],
    ...(tools === undefined ? {} : { tools: listOf(tools).map(objectOf).map(toolOf) }),
    ...(tool_choice === undefined ? {} : { tool_choice: choice.type ?? 'auto' }),
    ...(isSerial ? { parallel_tool_calls: false } : {}),
    ...(stop_sequences === undefined ? {} : { stop: stop_sequences }),
    ...(metadata === undefined ? {} : { user: objectOf(metadata).user_id ?? '' }),
  };
}

function partsOf(content: Json): Json {
  return listOf(content).map(objectOf).map(partOf);
}

function partOf(block: JsonObject): JsonObject {
  const { media_type, data, url } = objectOf(block.source);
  if (block.type !== 'image') return block;
  return {
    type: 'image_url',
    image_url: { url: url ?? `data:${String(media_type)};base64,${String(data)}` },
  };
}

function messagesOf({ role = '', content = '' }: JsonObject): JsonObject[] {
  const blocks = listOf(content).map(objectOf);
  const results = blocks.filter(({ type }) => type === 'tool_result');
  const tools = results.map(({ tool_use_id = '', content: result = '' }) => ({
    role: 'tool',
    tool_call_id: tool_use_id,
    content: result,
  }));
  const rest = blocks.filter((block) => !results.includes(block));
  if (typeof content === 'string') return [{ role, content }];
  return rest.length === 0 ? tools : [...tools, { role, content: partsOf(rest) }];
}

function toolOf(tool: JsonObject): JsonObject {
  const { input_schema, name = '', description } = tool;
  if (input_schema === undefined) return tool;
  const described = description === undefined ? {} : { description };
  return { type: 'function', function: { name, ...described, parameters: input_schema } };
}

/** Without defaults: a choice of `auto`, and parallel calls that are not turned off. */
function meaning(body: JsonObject): JsonObject {
  const { tool_choice, anthropic_version: _, ...rest } = body;
  const { type, disable_parallel_tool_use, ...choice } = objectOf(tool_choice);
  const isSerial = disable_parallel_tool_use === true;
  if (tool_choice === undefined || (type === 'auto' && !isSerial)) return rest;
  return {
    ...rest,
    tool_choice: { type: type ?? '', ...choice, ...(isSerial ? { disable_parallel_tool_use } : {}) },
  };
}

describe.skipIf(note !== '')(`recorded Messages requests${note}`, () => {
  test('the folder has recordings', () => {
    expect(names.length).toBeGreaterThan(10);
  });

  test.each(names)('A2 %s: a chat request with the same meaning is translated into it', (name) => {
    const recorded = objectOf(JSON.parse(readFileSync(FOLDER + name, 'utf8')));
    // Vertex has the model in its path.
    const body = { model: 'claude-3-7-sonnet-20250219', ...recorded };
    const sent: JsonObject = JSON.parse(JSON.stringify(send('anthropic', chatOf(body))));
    expect(meaning(sent)).toEqual(meaning(body));
  });
});
