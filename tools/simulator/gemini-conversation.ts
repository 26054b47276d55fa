/** Converts a `generateContent` body to a conversation in OpenAI's form, which the simulator's script reads. */
import { isObject, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import type { Call } from './scene.ts';

/** The call with a chat body: messages, tools and limit. */
export function asChat(call: Call): Call {
  const { contents, systemInstruction, tools, toolConfig, generationConfig } = call.body;
  const mode = textOf(objectOf(objectOf(toolConfig).functionCallingConfig).mode);
  const config = objectOf(generationConfig);
  const limit = numberOf(config.maxOutputTokens);
  const schema = config.responseJsonSchema ?? config.responseSchema;
  const format =
    schema === undefined ? { type: 'json_object' } : { type: 'json_schema', json_schema: { schema } };
  const system = objectsOf(objectOf(systemInstruction).parts).map((part) => textOf(part.text));
  const body: JsonObject = {
    messages: [
      ...(system.length > 0 ? [{ role: 'system', content: system.join('\n') }] : []),
      ...objectsOf(contents).flatMap(messagesOf),
    ],
    tools: objectsOf(tools)
      .flatMap((tool) => objectsOf(tool.functionDeclarations))
      .map(({ name, parametersJsonSchema, parameters }) => ({
        type: 'function',
        function: { name, parameters: parametersJsonSchema ?? parameters },
      })),
    ...(mode === 'NONE' ? { tool_choice: 'none' } : {}),
    ...(limit === undefined ? {} : { max_tokens: limit }),
    ...(config.responseMimeType === 'application/json' ? { response_format: format } : {}),
  };
  return { ...call, body };
}

function messagesOf({ role, parts }: JsonObject): JsonObject[] {
  const all = objectsOf(parts);
  const text = all.map((part) => (part.thought === true ? '' : textOf(part.text))).join('');
  const calls = all.filter((part) => isObject(part.functionCall));
  if (role === 'model') {
    const toolCalls = calls.map((part) => ({ type: 'function', function: objectOf(part.functionCall) }));
    return [{ role: 'assistant', content: text, ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}) }];
  }
  const results = all.filter((part) => isObject(part.functionResponse));
  const said = text === '' ? [] : [{ role: 'user', content: text }];
  return [...results.map((): JsonObject => ({ role: 'tool', content: 'result' })), ...said];
}
