/**
 * The most tokens that a prompt can have, whatever the tokenizer: a budget that is hard must not rest on an estimate (G2).
 *
 * Every tokenizer in use falls back to bytes: a token stands for at least one byte of UTF-8. The body's JSON holds every text of
 * the prompt, with more than one byte of its own for each token that a chat template puts around a message. What a template writes
 * out in a form of its own (tools, schemas) counts twice, and what providers add unseen has an allowance. What no body shows, such
 * as a file's pages or what is at an address, counts as the largest context window.
 */
import { isObject, type JsonObject, readArray, readCount, readText } from '../../shared/json.ts';

/** No public model has a larger context window that prices are known of (xAI's grok-4-fast; looked up on 2026-11-22). */
export const MAX_PROMPT_TOKENS = 2 * 1024 * 1024;

/** Hidden system prompts, above all for tools: Anthropic documents up to 735 (2026-11-22). */
const ADDED_TOKENS = 1024;

/** What templates write out anew: with indents, or with `\u` escapes. */
const REWRITTEN_FIELDS = ['tools', 'functions', 'response_format'];

/** Fields that have the provider search or read for the request, or go on with what it keeps. */
const READING_FIELDS = [
  ...['web_search_options', 'search_parameters', 'plugins', 'agent_id', 'preset', 'data_sources'],
  ...['previous_response_id', 'conversation', 'thread', 'container', 'mcp_servers', 'context_management'],
  // Google's, whose contents are elsewhere, and what may hold them.
  ...['cached_content', 'cachedContent', 'extra_body', 'contents', 'system_instruction', 'systemInstruction'],
];
/** Tools that the caller runs; all others the provider runs, and what they read becomes part of the prompt. */
const CALLERS_TOOLS = ['function', 'custom'];

/** Parts whose tokens are in their own text. */
const TEXT_PARTS = ['text', 'refusal', 'thinking', 'reasoning'];
/** Without a type, a part of these fields alone is a text. */
const TEXT_FIELDS = ['text', 'cache_control'];

/** The default of Qwen's vision models, the highest of those that people run themselves: their model cards, 2026-11-22. */
const MAX_IMAGE_TOKENS = 16_384;

const encoder = new TextEncoder();

/**
 * @param body as it is sent
 * @param json the body's JSON text
 * @param imageTokens the most that an image of any size can have at this provider, where it is known
 */
export function maxPromptTokens(
  body: JsonObject,
  json: string,
  imageTokens: number | undefined = MAX_IMAGE_TOKENS,
): number {
  const prompts = Math.max(1, readArray(body.prompt).length);
  const media = mediaOf(body);
  if (media.isUnbounded || isReading(body)) return prompts * MAX_PROMPT_TOKENS;
  const rewritten = REWRITTEN_FIELDS.map((field) => body[field]).filter((value) => value !== undefined);
  const bytes = bytesOf(json) + bytesOf(JSON.stringify(rewritten)) - media.imageBytes;
  const tokens = bytes + ADDED_TOKENS + media.images * imageTokens;
  return Math.min(tokens, prompts * MAX_PROMPT_TOKENS);
}

function bytesOf(text: string): number {
  return encoder.encode(text).length;
}

/** The most tokens that a value has whose texts a provider reads. */
export function mostTokensOf(value: unknown): number {
  return bytesOf(JSON.stringify(value));
}

function isReading(body: JsonObject): boolean {
  const isReadingField = (field: string) => body[field] !== undefined && body[field] !== null;
  // A prompt that is an object names one that the provider keeps.
  return (
    isObject(body.prompt) ||
    !readArray(body.tools).every(isCallersTool) ||
    READING_FIELDS.some(isReadingField)
  );
}

function isCallersTool(tool: unknown): boolean {
  if (!isObject(tool)) return true;
  const type =
    readText(tool.type) ?? (tool.function === undefined && tool.name === undefined ? '' : 'function');
  return CALLERS_TOOLS.includes(type);
}

/** OpenAI's, Anthropic's, DeepSeek's and xAI's (`web_search_20250305`, `web_search_preview`, …), and Google's. */
const SEARCH_TOOLS = /^(?:web_search|x_search|google_?search)/i;

/** Fields by which a chat asks for searches. */
const SEARCH_FIELDS = ['web_search_options', 'search_parameters'];

/**
 * The most searches that the provider may run for a request and bill: 0 where it has no tool for them, null where nothing limits them.
 * Limits: `max_uses` of Anthropic's tools (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool) and
 * `max_tool_calls` of Responses (openai 7.57.0), both read on 2026-11-22.
 */
export function maxSearches(body: JsonObject): number | null {
  const tools = readArray(body.tools).filter(isObject).filter(isSearch);
  if (SEARCH_FIELDS.some((field) => body[field] !== undefined)) return null;
  if (tools.length === 0) return 0;
  const uses = tools.map(({ max_uses }) => readCount(max_uses));
  const all = uses.some((count) => count === undefined)
    ? undefined
    : uses.reduce<number>((sum, count) => sum + (count ?? 0), 0);
  const limits = [all, readCount(body.max_tool_calls)].filter((limit) => limit !== undefined);
  return limits.length === 0 ? null : Math.min(...limits);
}

function isSearch(tool: JsonObject): boolean {
  return [readText(tool.type) ?? '', ...Object.keys(tool)].some((name) => SEARCH_TOOLS.test(name));
}

interface Media {
  readonly images: number;
  /** Of images that are in the body itself: an image's tokens follow from its size in pixels. */
  readonly imageBytes: number;
  /** There is a part of which the body does not tell how much it holds. */
  readonly isUnbounded: boolean;
}

/**
 * An image in the body is the only medium with a bound: an address may lead to anything, and pages and sounds may have fewer bytes
 * than tokens (a PDF of 1,000 pages can have 10 KB, and Gemini bills 258 tokens for each).
 */
function mediaOf(body: JsonObject): Media {
  let images = 0;
  let imageBytes = 0;
  let isUnbounded = false;
  for (const message of readArray(body.messages)) {
    if (!isObject(message)) continue;
    // An answer in sound that the provider keeps, by its id.
    if (isObject(message.audio)) isUnbounded = true;
    for (const part of readArray(message.content)) {
      if (!isObject(part) || isTextPart(part)) continue;
      const bytes = part.type === 'image_url' ? inlineImageBytes(part.image_url) : null;
      if (bytes === null) isUnbounded = true;
      images++;
      imageBytes += bytes ?? 0;
    }
  }
  return { images, imageBytes, isUnbounded };
}

function isTextPart(part: JsonObject): boolean {
  const type = readText(part.type);
  if (type !== undefined) return TEXT_PARTS.includes(type);
  return Object.keys(part).every((field) => TEXT_FIELDS.includes(field));
}

const IMAGE_DATA = /^data:image\//i;

/** OpenAI has `{"url"}`, Mistral takes the URL alone; null where it is no image in the body. */
function inlineImageBytes(image: unknown): number | null {
  const url = readText(isObject(image) ? image.url : image) ?? '';
  return IMAGE_DATA.test(url) ? url.length : null;
}
