/**
 * The shapes of a chat's prompt whose tokens its bytes bound: texts, calls of tools, schemas, and images inside the body. Servers read
 * other fields as images, files or references, so that whatever is not known here has no bound.
 */
import { isObject, type JsonObject, readText } from '../../shared/json.ts';

export interface Media {
  readonly images: number;
  /** The bytes of images inside the body: their tokens follow from their pixels instead. */
  readonly imageBytes: number;
  /** The body has a part whose size it does not show. */
  readonly isUnbounded: boolean;
}

/** Fields of a body besides its prompt that hold more than a number, and nothing but settings, names and schemas. */
const SETTINGS: ReadonlySet<string> = new Set([
  ...['model', 'models', 'stop', 'user', 'safety_identifier', 'service_tier', 'metadata', 'logit_bias'],
  ...['tools', 'tool_choice', 'functions', 'function_call', 'allowed_tools', 'parallel_tool_calls'],
  ...['response_format', 'stream_options', 'modalities', 'reasoning', 'reasoning_effort', 'verbosity'],
  ...['thinking', 'output_config', 'speed', 'inference_geo', 'safety_settings', 'prediction', 'truncate'],
  ...[
    'prompt_cache_key',
    'prompt_cache_retention',
    'prompt_cache_options',
    'cache_control',
    'encoding_format',
  ],
  // Alternatives that are bounded for themselves, and routing: https://openrouter.ai/docs/features/provider-routing (2026-11-23).
  ...['fallbacks', 'provider', 'route', 'transforms', 'usage', 'betas', 'context_length_exceeded_behavior'],
  // Of llama.cpp, vLLM and SGLang: grammars, schemas, samplers and arguments of the template.
  ...['grammar', 'json_schema', 'samplers', 'chat_template_kwargs', 'structured_outputs', 'regex', 'ebnf'],
  ...['guided_json', 'guided_regex', 'guided_choice', 'guided_grammar', 'bad_words', 'stop_token_ids'],
  ...['reasoning_format', 'reasoning_split', 'prompt_mode', 'chat_template', 'input_type', 'task'],
]);

/** Fields of a message besides its content. */
const MESSAGE_TEXTS = [
  'role',
  'name',
  'tool_call_id',
  'refusal',
  'reasoning_content',
  'reasoning',
  'type',
  'id',
];
/** Lists of objects that have texts, numbers and further such objects only. */
const MESSAGE_LISTS = ['tool_calls', 'reasoning_details', 'thinking_blocks', 'annotations'];
const MESSAGE_OBJECTS = ['function_call', 'cache_control', 'extra_content', 'prompt_cache_breakpoint'];

/** Parts whose own text contains all of their tokens. */
const TEXT_PARTS = ['text', 'refusal', 'thinking', 'reasoning'];
const TEXT_PART_FIELDS = [
  ...['type', 'text', 'refusal', 'thinking', 'reasoning', 'signature', 'closed'],
  ...['cache_control', 'prompt_cache_breakpoint', 'annotations', 'citations', 'extra_content'],
];
const IMAGE_PART_FIELDS = ['type', 'image_url', 'detail', 'cache_control', 'prompt_cache_breakpoint'];
const IMAGE_FIELDS = ['url', 'detail'];

/** Names under which servers read media, in a value of any depth. */
const MEDIA_NAMES = [
  'image',
  'video',
  'audio',
  'file',
  'document',
  'media',
  'attach',
  'inline',
  'source',
  'uri',
];

const NOTHING: Media = { images: 0, imageBytes: 0, isUnbounded: false };
const UNBOUNDED: Media = { images: 0, imageBytes: 0, isUnbounded: true };

/** @param body as it is sent */
export function mediaOf(body: JsonObject): Media {
  let images = 0;
  let imageBytes = 0;
  for (const [field, value] of Object.entries(body)) {
    if (field === 'messages') {
      if (!Array.isArray(value)) return UNBOUNDED;
      for (const message of value) {
        const media = mediaOfMessage(message);
        if (media.isUnbounded) return UNBOUNDED;
        images += media.images;
        imageBytes += media.imageBytes;
      }
    } else if (!isKnownField(field, value)) return UNBOUNDED;
  }
  return { images, imageBytes, isUnbounded: false };
}

function isKnownField(field: string, value: unknown): boolean {
  if (!isTextual(value))
    return field === 'prompt' || field === 'input' ? isPrompt(value) : SETTINGS.has(field);
  return typeof value !== 'string' || ['prompt', 'input', 'suffix'].includes(field) || SETTINGS.has(field);
}

/** A list of texts, of tokens, or of lists of tokens. */
function isPrompt(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  return value.every((item) => typeof item === 'string' || typeof item === 'number' || isTokens(item));
}

function isTokens(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'number');
}

/** A text, or what is none but has no parts. */
function isTextual(value: unknown): boolean {
  return value === null || value === undefined || typeof value !== 'object';
}

function mediaOfMessage(message: unknown): Media {
  if (!isObject(message)) return UNBOUNDED;
  for (const [field, value] of Object.entries(message)) {
    if (field === 'content' || isKnownMember(field, value)) continue;
    // A flag, such as `prefix`.
    if (typeof value === 'string' || !isTextual(value)) return UNBOUNDED;
  }
  const { content } = message;
  if (isTextual(content)) return NOTHING;
  return Array.isArray(content) ? mediaOfParts(content) : UNBOUNDED;
}

function isKnownMember(field: string, value: unknown): boolean {
  if (MESSAGE_TEXTS.includes(field)) return isTextual(value);
  if (MESSAGE_LISTS.includes(field)) return isTextual(value) || (Array.isArray(value) && !hasMedia(value));
  return MESSAGE_OBJECTS.includes(field) && !hasMedia(value);
}

function mediaOfParts(parts: readonly unknown[]): Media {
  let images = 0;
  let imageBytes = 0;
  for (const part of parts) {
    if (typeof part === 'string') continue;
    if (!isObject(part)) return UNBOUNDED;
    if (isTextPart(part)) continue;
    const bytes = part.type === 'image_url' ? inlineImageBytes(part) : null;
    if (bytes === null) return UNBOUNDED;
    images++;
    imageBytes += bytes;
  }
  return { images, imageBytes, isUnbounded: false };
}

/** A part without a type that has only the fields of a text is one. */
function isTextPart(part: JsonObject): boolean {
  const type = part.type === undefined ? 'text' : readText(part.type);
  return (
    type !== undefined &&
    TEXT_PARTS.includes(type) &&
    Object.entries(part).every(
      ([field, value]) =>
        TEXT_PART_FIELDS.includes(field) && (isTextual(value) || field !== 'text') && !hasMedia(value),
    )
  );
}

const IMAGE_DATA = /^data:image\//i;

/** OpenAI's form is `{"url"}`, Mistral's also the URL alone. Null where the image is not inside the body. */
function inlineImageBytes(part: JsonObject): number | null {
  const { image_url: image } = part;
  const fields = isObject(image) ? Object.keys(image) : [];
  const isKnown =
    Object.keys(part).every((field) => IMAGE_PART_FIELDS.includes(field)) &&
    fields.every((field) => IMAGE_FIELDS.includes(field));
  const url = readText(isObject(image) ? image.url : image) ?? '';
  return isKnown && IMAGE_DATA.test(url) ? url.length : null;
}

/** Whether an object somewhere in the value may be media: by the names of its members, or by its type. */
function hasMedia(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasMedia);
  if (!isObject(value)) return false;
  return (
    (typeof value.type === 'string' && isMediaName(value.type)) ||
    Object.entries(value).some(([name, inner]) => isMediaName(name) || hasMedia(inner))
  );
}

const MAX_NAME_CHARS = 64;

function isMediaName(name: string): boolean {
  const lower = name.slice(0, MAX_NAME_CHARS).toLowerCase();
  return MEDIA_NAMES.some((word) => lower.includes(word));
}
