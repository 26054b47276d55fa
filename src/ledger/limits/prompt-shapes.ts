/**
 * The shapes of a chat's prompt whose tokens its bytes bound: texts, calls of tools, schemas, and images inside the body. Servers read
 * other fields as images, files or references, so that whatever is not known here has no bound.
 */
import { fieldOf } from '../../facts/fields.ts';
import { isObject, type JsonObject, readText } from '../../shared/json.ts';
import { words } from '../../shared/words.ts';

export interface Media {
  readonly images: number;
  /** The bytes of images inside the body: their tokens follow from their pixels instead. */
  readonly imageBytes: number;
  /** The body has a part whose size it does not show. */
  readonly isUnbounded: boolean;
  /** The body has a field that is not known: the provider may read the prompt more than once. */
  readonly isUnknown: boolean;
}

/** What a template of a server may do with an object or a list in its arguments is not known. */
const TEMPLATE_ARGUMENTS = 'chat_template_kwargs';

/** Fields of a message besides its content. */
const MESSAGE_TEXTS = words('role name tool_call_id refusal reasoning_content reasoning type id');
/** Lists of objects that have texts, numbers and further such objects only. */
const MESSAGE_LISTS = ['tool_calls', 'reasoning_details', 'thinking_blocks', 'annotations'];
const MESSAGE_OBJECTS = ['function_call', 'cache_control', 'extra_content', 'prompt_cache_breakpoint'];

/** Parts whose own text contains all of their tokens. */
const TEXT_PARTS = ['text', 'refusal', 'thinking', 'reasoning'];
const TEXT_PART_FIELDS = [
  ...words(
    'type text refusal thinking reasoning signature closed cache_control prompt_cache_breakpoint annotations',
  ),
  ...words('citations extra_content'),
];
const IMAGE_PART_FIELDS = ['type', 'image_url', 'detail', 'cache_control', 'prompt_cache_breakpoint'];
const IMAGE_FIELDS = ['url', 'detail'];

/** The members of calls, reasoning, citations and cache marks, at any depth. */
const MEMBERS: ReadonlySet<string> = new Set([
  ...words(
    'type id call_id index name function custom description parameters strict text summary content thinking',
  ),
  ...words(
    'reasoning data signature format encrypted_content status phase refusal closed ttl scope mode google thought',
  ),
  ...words('thought_signature cache_control prompt_cache_breakpoint extra_content'),
]);
/** They are a text, whichever form they have. */
const ARGUMENTS = ['arguments', 'input'];
const CITATION = 'url_citation';
const CITATION_MEMBERS = ['url', 'title', 'content', 'start_index', 'end_index', 'type'];

/** Types of media, in a value of any depth. */
const MEDIA_NAMES = words('image video audio file document media attach inline source uri');

const NOTHING: Media = { images: 0, imageBytes: 0, isUnbounded: false, isUnknown: false };
const UNBOUNDED: Media = { ...NOTHING, isUnbounded: true };
const UNKNOWN: Media = { ...UNBOUNDED, isUnknown: true };

/** @param body as it is sent */
export function mediaOf(body: JsonObject): Media {
  const fields = Object.entries(body);
  if (fields.some(([field, value]) => field !== 'messages' && !isKnownField(field, value))) return UNKNOWN;
  const { messages } = body;
  if (messages === undefined) return NOTHING;
  if (!Array.isArray(messages)) return UNKNOWN;
  let images = 0;
  let imageBytes = 0;
  for (const message of messages) {
    const media = mediaOfMessage(message);
    if (media.isUnbounded) return UNBOUNDED;
    images += media.images;
    imageBytes += media.imageBytes;
  }
  return { ...NOTHING, images, imageBytes };
}

function isKnownField(field: string, value: unknown): boolean {
  const { prompt } = fieldOf(field);
  // Null and false turn a field off.
  if (value === null || value === undefined || value === false || prompt === 'setting') return true;
  if (field === 'prediction') return hasKnownMembers(value);
  if (field === TEMPLATE_ARGUMENTS) return isObject(value) && Object.values(value).every(isTextual);
  if (prompt === 'text') return typeof value === 'string' || (field !== 'suffix' && isPrompt(value));
  return prompt === 'flag' && isTextual(value) && typeof value !== 'string';
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
  // Without a list of its entries: a message may have 200,000 fields (B4).
  for (const field in message) {
    const value = message[field];
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
  if (MESSAGE_LISTS.includes(field))
    return isTextual(value) || (Array.isArray(value) && hasKnownMembers(value));
  return MESSAGE_OBJECTS.includes(field) && hasKnownMembers(value);
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
  return { ...NOTHING, images, imageBytes };
}

/** A part without a type that has only the fields of a text is one. */
function isTextPart(part: JsonObject): boolean {
  const type = part.type === undefined ? 'text' : readText(part.type);
  return (
    type !== undefined &&
    TEXT_PARTS.includes(type) &&
    Object.entries(part).every(
      ([field, value]) =>
        TEXT_PART_FIELDS.includes(field) && (isTextual(value) || field !== 'text') && hasKnownMembers(value),
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

/** Whether the objects in a value have known members only, and none has a type of media. */
function hasKnownMembers(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(hasKnownMembers);
  if (!isObject(value)) return true;
  if (typeof value.type === 'string' && isMediaName(value.type)) return false;
  return Object.entries(value).every(([name, inner]) => {
    if (ARGUMENTS.includes(name)) return true;
    if (name === CITATION) return isCitation(inner);
    return MEMBERS.has(name) && hasKnownMembers(inner);
  });
}

function isCitation(value: unknown): boolean {
  return (
    isObject(value) &&
    Object.entries(value).every(([name, inner]) => CITATION_MEMBERS.includes(name) && isTextual(inner))
  );
}

const MAX_NAME_CHARS = 64;

function isMediaName(name: string): boolean {
  const lower = name.slice(0, MAX_NAME_CHARS).toLowerCase();
  return MEDIA_NAMES.some((word) => lower.includes(word));
}
