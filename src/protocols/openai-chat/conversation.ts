/** Parses the messages of a chat request into the turns of a conversation, and its tools. */
import type {
  Block,
  ReasoningBlock,
  Tool,
  ToolCallBlock,
  ToolChoice,
  Turn,
} from '../../canonical/conversation.ts';
import type { Media } from '../../canonical/media.ts';
import { readReasoningDetails } from '../../canonical/reasoning-details.ts';
import { signatureOfCall } from '../../request-translation/messages.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import { words } from '../../shared/words.ts';

/** @param messages what is no object among them is left out */
export function readTurns(messages: unknown): readonly Turn[] {
  return readArray(messages).filter(isObject).map(readTurn);
}

function readTurn(message: JsonObject): Turn {
  const { role, content } = message;
  if (role === 'assistant') return readAssistant(message);
  if (role === 'tool') return readResult(message);
  const isKnown = role === 'user' || role === 'system' || role === 'developer';
  // A content of another type stays with the other fields: it is the provider's to refuse.
  const isContent = typeof content === 'string' || Array.isArray(content);
  return {
    role: isKnown ? role : 'user',
    blocks: readContent(content),
    extra: extraOf(message, [isKnown ? 'role' : '', isContent ? 'content' : '']),
  };
}

const NONE: JsonObject = {};

/** The most fields of `extra`: of them only marks are used, and the first 100 names are reported as dropped. */
const MAX_EXTRA_FIELDS = 1000;

/** The fields that are not read. Most messages and parts have none: then nothing is copied. */
function extraOf(object: JsonObject, read: readonly string[]): JsonObject {
  const extra: [string, unknown][] = [];
  for (const key in object) {
    if (read.includes(key)) continue;
    if (extra.length === MAX_EXTRA_FIELDS) break;
    extra.push([key, object[key]]);
  }
  return extra.length === 0 ? NONE : Object.fromEntries(extra);
}

function readResult(message: JsonObject): Turn {
  const { tool_call_id, content } = message;
  const result: Block = {
    kind: 'tool_result',
    id: readText(tool_call_id) ?? '',
    content: Array.isArray(content) ? readContent(content) : textOf(content ?? ''),
    extra: extraOf(message, ['role', 'content', 'tool_call_id']),
  };
  return { role: 'user', blocks: [result], extra: NONE };
}

/** Chat takes a text. Some clients send the value itself. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function readAssistant(message: JsonObject): Turn {
  const { content, tool_calls } = message;
  return {
    role: 'assistant',
    blocks: [
      ...readReasoning(message),
      ...readContent(Array.isArray(content) ? content.filter((part) => !isThinking(part)) : content),
      ...readArray(tool_calls).filter(isObject).map(readCall),
    ],
    refusal: readText(message.refusal),
    extra: extraOf(message, ASSISTANT_FIELDS),
  };
}

const ASSISTANT_FIELDS = words(`
  role content tool_calls refusal reasoning_content reasoning reasoning_details thinking_blocks
`);

function isThinking(part: unknown): part is JsonObject {
  return isObject(part) && (part.type === 'thinking' || part.type === 'redacted_thinking');
}

/** A client may have the same reasoning in several fields: of `thinking_blocks` and the content, the first that is signed counts. */
function readReasoning(message: JsonObject): readonly ReasoningBlock[] {
  const text = readText(message.reasoning_content) ?? readText(message.reasoning);
  const signed = signedThinking(message.thinking_blocks);
  return [
    ...(text === undefined ? [] : [{ kind: 'reasoning', text } as const]),
    ...readReasoningDetails(message.reasoning_details),
    ...(signed.length > 0 ? signed : signedThinking(message.content)),
  ];
}

function signedThinking(parts: unknown): readonly ReasoningBlock[] {
  return Array.isArray(parts) ? parts.filter(isThinking).flatMap(readThinking) : [];
}

/** Anthropic's thinking, if it is signed. */
function readThinking({ type, thinking, signature, data }: JsonObject): ReasoningBlock[] {
  const isEncrypted = type === 'redacted_thinking';
  const value = readText(isEncrypted ? data : signature);
  if (value === undefined) return [];
  const text = isEncrypted ? '' : (readText(thinking) ?? '');
  const origin = { format: null, provider: null, id: '' };
  return [{ kind: 'reasoning', text, signature: { value, isEncrypted, ...origin } }];
}

function readCall(call: JsonObject): ToolCallBlock {
  const isCustom = call.type === 'custom';
  const called = isCustom ? objectOf(call.custom, call.function) : objectOf(call.function, call.custom);
  const input = called.arguments ?? called.input;
  return {
    kind: 'tool_call',
    id: readText(call.id) ?? '',
    name: readText(called.name) ?? '',
    input: textOf(input ?? (isCustom ? '' : {})),
    ...(isCustom ? { isCustom } : {}),
    signature: signatureOfCall(call.extra_content),
  };
}

function readContent(content: unknown): readonly Block[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  const blocks: Block[] = [];
  for (const part of readArray(content)) {
    if (typeof part === 'string') blocks.push({ kind: 'text', text: part });
    else if (isObject(part)) blocks.push(readPart(part));
  }
  return blocks;
}

function readPart(part: JsonObject): Block {
  const type = readText(part.type) ?? 'text';
  const extra = extraOf(part, ['type', type]);
  if (type === 'text' && typeof part.text === 'string') return { kind: 'text', text: part.text, extra };
  if (type === 'refusal' && typeof part.refusal === 'string') {
    return { kind: 'text', text: part.refusal, isRefusal: true, extra };
  }
  const media = readMedia(part);
  if (media === undefined) return { kind: 'unknown', raw: part };
  // Anthropic's field, which clients of Claude send beside a file.
  const isCited = objectOf(part.citations).enabled === true;
  return { kind: 'media', media, extra, ...(isCited ? { cited: {} } : {}) };
}

/** Of OpenAI's parts, OpenRouter's `video_url` and Mistral's `document_url`. Undefined if the part has no media. */
function readMedia(part: JsonObject): Media | undefined {
  const { image_url, video_url, document_url, input_audio } = part;
  switch (part.type) {
    case 'image_url':
      return fromUrl('image', image_url);
    case 'video_url':
      return fromUrl('video', video_url);
    case 'document_url':
      return fromUrl('document', document_url, part.document_name);
    case 'input_audio': {
      const { data, format } = objectOf(input_audio);
      return typeof data === 'string'
        ? { type: 'audio', data, format: readText(format) ?? 'wav' }
        : undefined;
    }
    case 'file': {
      const { file_data, file_url, file_id, filename } = objectOf(part.file);
      const url = readText(file_data) ?? readText(file_url);
      const fileId = readText(file_id);
      const isKnown = url !== undefined || fileId !== undefined;
      return isKnown ? { type: 'file', url, fileId, name: readText(filename) } : undefined;
    }
    default:
      return undefined;
  }
}

function fromUrl(type: 'image' | 'video' | 'document', value: unknown, name?: unknown): Media | undefined {
  const { url: given = value, detail } = objectOf(value);
  const url = readText(given);
  return url === undefined ? undefined : { type, url, detail, name: readText(name) };
}

/** @returns undefined where the client sent no list */
export function readTools(tools: unknown): readonly Tool[] | undefined {
  return Array.isArray(tools) ? tools.map(readTool) : undefined;
}

function readTool(raw: unknown): Tool {
  if (!isObject(raw)) return { kind: 'unknown', raw };
  const { type = 'function', function: called, custom } = raw;
  if (type === 'function' && isObject(called)) {
    return { kind: 'function', definition: called, extra: extraOf(raw, ['type', 'function']) };
  }
  if (type === 'custom' && isObject(custom)) return { kind: 'custom', definition: custom, raw };
  return { kind: 'unknown', raw };
}

/** `any` is Mistral's word. */
export function readToolChoice(choice: unknown): ToolChoice | undefined {
  if (choice === undefined) return undefined;
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { kind: choice };
  if (choice === 'any') return { kind: 'required' };
  const raw = objectOf(choice);
  const [tool] = readNamed(raw);
  if (tool !== undefined) return { kind: 'tool', ...tool };
  if (raw.type !== 'allowed_tools') return { kind: 'unknown', raw: choice };
  const { mode, tools } = objectOf(raw.allowed_tools, raw);
  const named = readArray(tools).filter(isObject).flatMap(readNamed);
  return { kind: 'allowed', mode: mode === 'required' ? mode : 'auto', tools: named };
}

/** The name is inside the member of its type, or beside the type. */
function readNamed({ type, name, ...members }: JsonObject) {
  if (type !== 'function' && type !== 'custom') return [];
  const named = readText(objectOf(members[type]).name) ?? readText(name);
  return named === undefined ? [] : [{ type, name: named } as const];
}
