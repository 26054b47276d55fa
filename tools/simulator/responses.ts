/**
 * Responses as OpenAI (R `openai--responses-*`, 2026-08) and DeepSeek (R `deepseek--responses-*`, 2026-08) stream it: items announced,
 * numbered events, no `[DONE]`. OpenAI pads its deltas, keeps what it is not asked not to, encrypts its reasoning and refuses any that
 * it did not write; DeepSeek shows its reasoning, and keeps nothing. xAI (R `xai--responses-*`, 2026-08) encrypts as OpenAI does.
 */
import { compact, decodeObject, type Json, type JsonObject, objectOf, objectsOf, textOf } from './json.ts';
import type { Call, Refusal, WireEvent } from './scene.ts';
import { CREATED_SECONDS } from './scene.ts';
import { costOf, joined, type Script, wholeCalls } from './script.ts';
import { tooLong } from './tool-calls.ts';

export interface ResponsesOptions {
  readonly model: string;
  readonly script: Script;
  /** Reasoning tokens that are not shown, but come back encrypted. */
  readonly hidden: number;
  readonly form: 'openai' | 'deepseek' | 'xai';
  readonly callId: (number: number) => string;
}

/** What the deployment's key may go on with: items by the response that they led to. */
const kept = new Map<string, readonly JsonObject[]>();

/** The request in chat's form, from which the script follows. */
export function chatOf(call: Call): Call {
  const { body } = call;
  const previous = kept.get(textOf(body.previous_response_id)) ?? [];
  const input =
    typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : objectsOf(body.input);
  const messages: JsonObject[] = [];
  for (const item of [...previous, ...input]) {
    const last = messages.at(-1);
    if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      const input = item.type === 'function_call' ? item.arguments : compact({ input: item.input ?? '' });
      const fn = { name: flatName(textOf(item.name), textOf(item.namespace)), arguments: input ?? '' };
      const added = { id: item.call_id ?? '', type: 'function', function: fn };
      if (last?.role === 'assistant')
        messages.splice(-1, 1, { ...last, tool_calls: [...objectsOf(last.tool_calls), added] });
      else messages.push({ role: 'assistant', content: '', tool_calls: [added] });
    } else if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output') {
      messages.push({ role: 'tool', tool_call_id: item.call_id ?? '', content: item.output ?? '' });
    } else if (item.role !== undefined) {
      messages.push({ role: item.role, content: contentOf(item.content) });
    }
  }
  const tools = [...toolsOf([...objectsOf(body.tools), ...input.flatMap(additionalTools)])].map(
    ([name, { definition, isCustom }]) => {
      const parameters = { type: 'object', properties: { input: { type: 'string' } } };
      return { type: 'function', function: { ...definition, ...(isCustom ? { parameters } : {}), name } };
    },
  );
  const limit = body.max_output_tokens === undefined ? {} : { max_tokens: body.max_output_tokens };
  const format = objectOf(objectOf(body.text).format);
  const response_format = { ...format, json_schema: { schema: format.schema ?? {} } };
  const choice = objectOf(body.tool_choice);
  const forced = choice.type === 'function' ? { tool_choice: { function: { name: choice.name ?? '' } } } : {};
  return { ...call, body: { ...body, messages, tools, response_format, ...limit, ...forced } };
}

interface Tool {
  readonly definition: JsonObject;
  readonly isCustom: boolean;
  readonly namespace: string;
}

/** Functions and custom tools by their name in the script, also those in namespaces. Hosted tools are not called here. */
function toolsOf(tools: readonly JsonObject[], namespace = ''): Map<string, Tool> {
  const found = new Map<string, Tool>();
  for (const { type, ...definition } of tools) {
    const name = textOf(definition.name);
    if (type === 'namespace') {
      for (const [inner, tool] of toolsOf(objectsOf(definition.tools), name)) found.set(inner, tool);
    } else if (type === 'function' || type === 'custom') {
      found.set(flatName(name, namespace), { definition, isCustom: type === 'custom', namespace });
    }
  }
  return found;
}

/** Codex 0.169 sends its tools in such an item to models that it knows as gpt-6 (2026-11-22). */
function additionalTools({ type, tools }: JsonObject): JsonObject[] {
  return type === 'additional_tools' ? objectsOf(tools) : [];
}

function flatName(name: string, namespace: string): string {
  return namespace === '' ? name : `${namespace}__${name}`;
}

function contentOf(content: Json | undefined): string {
  return typeof content === 'string'
    ? content
    : objectsOf(content)
        .map(({ text }) => textOf(text))
        .join('');
}

type Refuse = (status: number, message: string, param: string | null, code: string | null) => Refusal;

/** What both refuse of the input and of what it refers to. */
export function checkResponses(call: Call, refuse: Refuse): Refusal | undefined {
  const { input, previous_response_id: previous } = call.body;
  if (input === undefined) {
    return refuse(400, "Missing required parameter: 'input'.", 'input', 'missing_required_parameter');
  }
  if (call.body.messages !== undefined) {
    return refuse(400, "Unsupported parameter: 'messages'.", 'messages', 'unsupported_parameter');
  }
  if (typeof previous === 'string' && !kept.has(previous)) {
    const message = `Previous response with id '${previous}' not found.`;
    return refuse(400, message, 'previous_response_id', 'previous_response_not_found');
  }
  return undefined;
}

/** What OpenAI refuses of the items themselves. */
export function checkItems(call: Call, refuse: Refuse): Refusal | undefined {
  for (const [index, item] of objectsOf(call.body.input).entries()) {
    const id = textOf(item.call_id);
    if (id.length > 64) {
      // AnswerDotAI/fastllm#45, 2026-06-08.
      const at = `input[${index}].call_id`;
      return refuse(400, tooLong(id, at), at, 'string_above_max_length');
    }
    if (item.type !== 'reasoning') continue;
    if (item.encrypted_content === undefined || item.encrypted_content === null) {
      const message = `Item with id '${textOf(item.id)}' not found. Items are not persisted when \`store\` is set to false.`;
      return refuse(404, message, 'input', null);
    }
    // Clients that keep nothing leave the id out (@ai-sdk/openai 3.0.141 with `store: false`).
    const isOwn = item.id === undefined && ENCRYPTED.test(textOf(item.encrypted_content));
    if (!isOwn && item.encrypted_content !== encrypted(textOf(item.id))) {
      const message = `The encrypted content for item ${textOf(item.id)} could not be verified.`;
      return refuse(400, message, null, 'invalid_encrypted_content');
    }
  }
  return undefined;
}

export const ENCRYPTED = /^gAAAAsim-rs_sim\d+n\d+$/;

function encrypted(id: string): string {
  return `gAAAAsim-${id}`;
}

export function* responsesStream(call: Call, options: ResponsesOptions): Generator<WireEvent> {
  let number = 0;
  const write = (kind: WireEvent['kind'], type: string, rest: JsonObject): WireEvent => {
    const pad =
      type.endsWith('.delta') && options.form === 'openai'
        ? { obfuscation: 'q0Zx7Lm2vB4tYw9c'.slice(number % 13) }
        : {};
    const json = compact({ type, ...rest, ...pad, sequence_number: number++ });
    return { kind, text: `event: ${type}\ndata: ${json}\n\n` };
  };
  const output: JsonObject[] = [];
  const head = responseOf(call, options, 'in_progress', [], null);
  yield write('role', 'response.created', { response: head });
  yield write('role', 'response.in_progress', { response: head });
  for (const item of itemsOf(call, options)) {
    const output_index = output.length;
    const empty = {
      ...item,
      ...('status' in item ? { status: 'in_progress' } : {}),
      ...('content' in item ? { content: [] } : {}),
      ...('summary' in item ? { summary: [] } : {}),
      ...('arguments' in item ? { arguments: '' } : {}),
      ...('input' in item ? { input: '' } : {}),
    };
    yield write('role', 'response.output_item.added', { output_index, item: empty });
    const at = { item_id: textOf(item.id), output_index };
    for (const part of objectsOf(item.content)) {
      const name = `response.${textOf(part.type)}`;
      const inPart = { ...at, content_index: 0 };
      const logprobs = 'logprobs' in part ? { logprobs: [] } : {};
      yield write('role', 'response.content_part.added', { ...inPart, part: { ...part, text: '' } });
      for (const delta of wordsOf(textOf(part.text))) {
        yield write('piece', `${name}.delta`, { ...inPart, delta, ...logprobs });
      }
      yield write('role', `${name}.done`, { ...inPart, text: part.text ?? '', ...logprobs });
      yield write('role', 'response.content_part.done', { ...inPart, part });
    }
    for (const part of objectsOf(item.summary)) {
      yield write('role', 'response.reasoning_summary_part.added', {
        ...at,
        summary_index: 0,
        part: { ...part, text: '' },
      });
      for (const delta of wordsOf(textOf(part.text))) {
        yield write('piece', 'response.reasoning_summary_text.delta', { ...at, summary_index: 0, delta });
      }
      yield write('role', 'response.reasoning_summary_text.done', {
        ...at,
        summary_index: 0,
        text: part.text ?? '',
      });
      yield write('role', 'response.reasoning_summary_part.done', { ...at, summary_index: 0, part });
    }
    if (item.type === 'function_call') {
      yield write('piece', 'response.function_call_arguments.delta', { ...at, delta: item.arguments ?? '' });
      yield write('role', 'response.function_call_arguments.done', {
        ...at,
        arguments: item.arguments ?? '',
      });
    }
    if (item.type === 'custom_tool_call') {
      yield write('piece', 'response.custom_tool_call_input.delta', { ...at, delta: item.input ?? '' });
      yield write('role', 'response.custom_tool_call_input.done', { ...at, input: item.input ?? '' });
    }
    yield write('role', 'response.output_item.done', { output_index, item });
    output.push(item);
  }
  const ending = responsesObject(call, options);
  yield write('finish', `response.${textOf(ending.status)}`, { response: ending });
}

export function responsesObject(call: Call, options: ResponsesOptions): JsonObject {
  const status = options.script.finish === 'length' ? 'incomplete' : 'completed';
  const output = itemsOf(call, options);
  const response = responseOf(call, options, status, output, usageOf(call, options));
  const input =
    typeof call.body.input === 'string'
      ? [{ role: 'user', content: call.body.input }]
      : objectsOf(call.body.input);
  const before = kept.get(textOf(call.body.previous_response_id)) ?? [];
  if (response.store === true) kept.set(textOf(response.id), [...before, ...input, ...output]);
  return response;
}

/** All of the fields that the recorded objects have. */
function responseOf(
  { body, serial }: Call,
  { model, script, form }: ResponsesOptions,
  status: string,
  output: readonly JsonObject[],
  usage: JsonObject | null,
): JsonObject {
  const isOpenai = form === 'openai';
  const isOver = status !== 'in_progress';
  // Functions are strict by default in Responses: developers.openai.com/api/docs/guides/migrate-to-responses.
  const isStrict = (tool: JsonObject) => isOpenai && tool.type === 'function';
  const { effort = null, summary = null } = objectOf(body.reasoning);
  const { format = { type: 'text' }, verbosity = isOpenai ? 'medium' : null } = objectOf(body.text);
  return {
    id: `resp_sim${String(serial).padStart(20, '0')}`,
    object: 'response',
    created_at: CREATED_SECONDS,
    status,
    background: false,
    completed_at: status === 'completed' ? CREATED_SECONDS + 1 : null,
    ...(isOpenai ? {} : { content_filters: null }),
    error: null,
    frequency_penalty: 0,
    incomplete_details:
      status === 'incomplete' && script.finish === 'length' ? { reason: 'max_output_tokens' } : null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    model,
    moderation: null,
    output: [...output],
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    presence_penalty: 0,
    previous_response_id: body.previous_response_id ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    prompt_cache_retention: isOpenai ? (body.prompt_cache_retention ?? 'in_memory') : null,
    reasoning: { ...(isOpenai ? { context: null } : {}), effort, summary },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: isOpenai && !isOver ? 'auto' : 'default',
    store: isOpenai && body.store !== false,
    temperature: body.temperature ?? 1,
    text: { format, verbosity },
    tool_choice: body.tool_choice ?? 'auto',
    tools: objectsOf(body.tools).map((tool) => ({ ...(isStrict(tool) ? { strict: true } : {}), ...tool })),
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    usage,
    user: body.user ?? null,
    metadata: body.metadata ?? {},
  };
}

function itemsOf(call: Call, { script, hidden, form, callId }: ResponsesOptions): JsonObject[] {
  const id = (prefix: string, index: number) => `${prefix}_sim${call.serial}n${index}`;
  const items: JsonObject[] = [];
  const thought = joined(script, 'reasoning');
  if (form === 'deepseek' && thought !== '') {
    const content = [{ type: 'reasoning_text', text: thought }];
    items.push({ type: 'reasoning', id: id('rs', 0), status: 'completed', content, summary: [] });
  } else if (thought !== '' || hidden > 0) {
    const own = id('rs', 0);
    const summary = thought === '' ? [] : [{ type: 'summary_text', text: thought }];
    items.push({ id: own, type: 'reasoning', summary, encrypted_content: encrypted(own) });
  }
  const text = joined(script, 'text');
  const status = script.finish === 'length' ? 'incomplete' : 'completed';
  if (text !== '') {
    const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }];
    const phase = form === 'deepseek' ? { phase: 'final_answer' } : {};
    items.push({
      id: id('msg', items.length),
      type: 'message',
      status,
      content,
      ...phase,
      role: 'assistant',
    });
  }
  const tools = toolsOf([
    ...objectsOf(call.body.tools),
    ...objectsOf(call.body.input).flatMap(additionalTools),
  ]);
  for (const { number, name: flat, arguments: args } of wholeCalls(script)) {
    const { definition = {}, isCustom = false, namespace = '' } = tools.get(flat) ?? {};
    const name = definition.name ?? flat;
    const of = { status, call_id: callId(number), name, ...(namespace === '' ? {} : { namespace }) };
    const input = textOf(decodeObject(args)?.input);
    items.push(
      isCustom
        ? { id: id('ctc', items.length), type: 'custom_tool_call', ...of, input }
        : { id: id('fc', items.length), type: 'function_call', ...of, arguments: args },
    );
  }
  return items;
}

function usageOf(call: Call, { script, hidden, form }: ResponsesOptions): JsonObject {
  const cost = costOf(chatOf(call), [script], hidden);
  const hasCache = form === 'deepseek' || call.cachedShare !== undefined;
  const cached = hasCache ? cost.cached : cachedTokens(call);
  return {
    input_tokens: cost.prompt,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: cost.completion,
    output_tokens_details: { reasoning_tokens: cost.reasoning },
    total_tokens: cost.total,
  };
}

/** The inputs that the cache has seen, by their request's number. */
const seen = new Map<number, { readonly model: string; readonly items: readonly string[] }>();
const MAX_SEEN = 500;

/** Of the longest beginning that an earlier input of the model has, too. */
function cachedTokens(call: Call): number {
  const input = objectsOf(call.body.input);
  const items = input.map((item) => compact(item));
  let longest = 0;
  for (const [serial, { model, items: earlier }] of seen) {
    if (serial === call.serial || model !== call.model) continue;
    const differs = items.findIndex((item, at) => item !== earlier[at]);
    longest = Math.max(longest, differs < 0 ? items.length : differs);
  }
  seen.set(call.serial, { model: call.model, items });
  const [oldest] = seen.keys();
  if (seen.size > MAX_SEEN && oldest !== undefined) seen.delete(oldest);
  return costOf(chatOf({ ...call, body: { input: input.slice(0, longest) } }), []).prompt;
}

function wordsOf(text: string): string[] {
  return text.match(/\s*\S+/g) ?? [];
}
