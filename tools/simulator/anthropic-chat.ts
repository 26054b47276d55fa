/** Converts a Messages request to a chat request, from which the script of the simulated output is made. */
import { isObject, type Json, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';

export function chatOf(body: JsonObject): JsonObject {
  const { system, messages, tools, tool_choice, max_tokens } = body;
  const choice = objectOf(tool_choice);
  const { type, schema } = objectOf(objectOf(body.output_config).format);
  const format =
    type === 'json_schema' ? { response_format: { type, json_schema: { schema: schema ?? {} } } } : {};
  const named = { type: 'function', function: { name: choice.name } };
  return {
    max_tokens,
    messages: [
      ...(system === undefined ? [] : [{ role: 'system', content: textIn(system) }]),
      ...objectsOf(messages).flatMap(messagesOf),
    ],
    tools: objectsOf(tools).map(({ name, input_schema }) => ({
      type: 'function',
      function: { name, parameters: input_schema },
    })),
    tool_choice: choice.type === 'tool' ? named : choice.type,
    parallel_tool_calls: choice.disable_parallel_tool_use !== true,
    ...format,
  };
}

/** The blocks of a content, which is a string or a list. */
export function blocksOf(content: Json | undefined): JsonObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content);
}

function textIn(content: Json | undefined): string {
  return blocksOf(content)
    .map((block) => textOf(block.text))
    .join(' ');
}

function messagesOf({ role, content }: JsonObject): JsonObject[] {
  const blocks = blocksOf(content);
  const results = blocks.filter(({ type }) => type === 'tool_result');
  const calls = blocks.filter(({ type }) => type === 'tool_use');
  const text = textIn(blocks.filter((block) => block.type === 'text'));
  const tools = results.map((result) => ({
    role: 'tool',
    tool_call_id: result.tool_use_id,
    content: isObject(result.content) ? '' : textIn(result.content),
  }));
  if (calls.length > 0) return [{ role, content: text, tool_calls: calls.map(({ id }) => ({ id })) }];
  return text === '' && tools.length > 0 ? tools : [...tools, { role, content: text }];
}
