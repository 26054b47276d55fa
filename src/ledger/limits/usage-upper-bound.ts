/**
 * The upper bound of what a request may use, for every target that may serve it: prompt and output tokens, web searches and prices.
 * A hard budget reserves it, so it must not rest on an estimate.
 */
import { type ApiError, apiError } from '../../canonical/error.ts';
import type { ReplayableRequest } from '../../completion/replayable-request.ts';
import type { TargetRequest } from '../../completion/target-request.ts';
import { fieldOf, fieldsWhere } from '../../facts/fields.ts';
import { limitName } from '../../fitting/output-limit.ts';
import type { PricedModel } from '../../metering/pricing/highest-price.ts';
import type { PromptHasher } from '../../metering/prompt-hashes.ts';
import { addressesOf, type Target } from '../../routing/targets.ts';
import { makersOf } from '../../settings/bare-models.ts';
import { matchesAnyGlob } from '../../shared/glob.ts';
import { isObject, type JsonObject, readArray, readCount, readText } from '../../shared/json.ts';
import { failure, ok, type Result } from '../../shared/result.ts';
import { words } from '../../shared/words.ts';
import { MAX_HASHES, type PromptBound, type PromptTokens } from './known-prompts.ts';
import { mediaOf } from './prompt-shapes.ts';

interface UsageUpperBound {
  readonly promptTokens: number;
  readonly likelyPromptTokens: number;
  /** The prompt of each target. */
  readonly prompts: readonly PromptBound[];
  /** The hash of each target's whole prompt, by the target's address. */
  readonly hashes: ReadonlyMap<string, string>;
  readonly choices: number;
  /** The most web searches of one choice; null: nothing limits them. */
  readonly searches: number | null;
  /** Of one choice; null where the request for a target has no output limit. */
  readonly outputTokens: number | null;
  /** Tokens that are billed as output in addition to those of each choice. */
  readonly extraOutputTokens: number;
  /** A model may write output that it does not show, such as reasoning. */
  readonly hidesOutput: boolean;
  /** Each model that may serve the request. */
  readonly models: readonly (PricedModel & {
    readonly address: string;
    readonly maxTokensPerSecond?: number;
  })[];
}

/**
 * The highest bound of all targets, because each of them may serve the request.
 * @param hasher null: no beginnings of prompts are known
 * @param first the request for the first target; those for the others are written here only to measure them
 */
export async function findUsageUpperBound(
  targets: readonly Target[],
  first: TargetRequest,
  replayable: ReplayableRequest,
  hasher: Pick<PromptHasher, 'beginnings'> | null = null,
): Promise<Result<UsageUpperBound, ApiError>> {
  const maxHashes = Math.floor(MAX_HASHES / targets.length);
  const boundOf = async (request: TargetRequest) => {
    const bound = upperBoundOf(request);
    return bound.kind === 'error' || hasher === null
      ? bound
      : ok(await withBeginnings(request, bound.value, hasher, maxHashes));
  };
  let highest = await boundOf(first);
  for (const target of targets) {
    if (highest.kind === 'error') return highest;
    if (target === first.traits.target) continue;
    const targetRequest = await replayable.writeFor(target);
    // A target whose provider does not take the request is not called.
    if (targetRequest.kind === 'error') continue;
    const next = await boundOf(targetRequest.value);
    highest = next.kind === 'error' ? next : ok(maximum(highest.value, next.value));
  }
  return highest;
}

function maximum(a: UsageUpperBound, b: UsageUpperBound): UsageUpperBound {
  const isLimited = a.outputTokens !== null && b.outputTokens !== null;
  return {
    promptTokens: Math.max(a.promptTokens, b.promptTokens),
    likelyPromptTokens: Math.max(a.likelyPromptTokens, b.likelyPromptTokens),
    prompts: [...a.prompts, ...b.prompts],
    hashes: new Map([...a.hashes, ...b.hashes]),
    choices: Math.max(a.choices, b.choices),
    searches: a.searches === null || b.searches === null ? null : Math.max(a.searches, b.searches),
    outputTokens: isLimited ? Math.max(a.outputTokens, b.outputTokens) : null,
    extraOutputTokens: Math.max(a.extraOutputTokens, b.extraOutputTokens),
    hidesOutput: a.hidesOutput || b.hidesOutput,
    models: [...a.models, ...b.models],
  };
}

function upperBoundOf(request: TargetRequest): Result<UsageUpperBound, ApiError> {
  const { body, form, chatBody, prompts, traits, writesText, outputTokens } = request;
  const { provider, priceIds } = traits.target;
  const choices = readChoices(chatBody);
  if (outputTokens === undefined) return failure(notWhole(limitName(form)));
  if (choices === undefined) return failure(notWhole('n'));
  const sent = traits.passthrough === null ? chatBody : body;
  const models = addressesOf(traits.target, sent).map((address) => address.slice(provider.id.length + 1));
  const searches = maxSearches(body);
  const shared = {
    priceIds,
    tier: premiumTier(sent),
    hasDefaultCache: !CACHE_TIMES.test(request.json),
    searches: searches !== 0,
    ...(provider.stopsOnClose !== undefined && { maxTokensPerSecond: provider.stopsOnClose }),
  };
  const times = provider.billsFallbacks === true ? models.length : 1;
  // Facts of models are known by their makers' names.
  const { model: ownName, makerModel } = traits.target;
  const makerModels = models.map((name) => (name === ownName ? makerModel : name));
  const prompt = promptTokensOf(request, makerModels);
  const tokens = prompt.tokens * times;
  const likelyTokens = prompt.likelyTokens * times;
  return ok({
    promptTokens: tokens,
    likelyPromptTokens: likelyTokens,
    prompts: [{ tokens, likelyTokens, beginnings: [] }],
    hashes: new Map(),
    choices: writesText ? prompts * choices * times : 0,
    searches,
    outputTokens,
    // Rejected predicted tokens are billed as output: https://platform.openai.com/docs/guides/predicted-outputs.
    extraOutputTokens: sent.prediction === undefined ? 0 : maxTokensOf(sent.prediction),
    hidesOutput: hidesOutput(request, makerModels),
    models: models.map((model) => ({ ...shared, model, address: `${provider.id}/${model}` })),
  });
}

/** In passthrough no field of a request is read; those that hide output leave out what models show otherwise. */
function hidesOutput({ traits }: TargetRequest, models: readonly string[]): boolean {
  const visible = traits.target.provider.visibleOutputModels ?? [];
  return traits.passthrough === null
    ? !traits.showsAll
    : !models.every((model) => matchesAnyGlob(visible, model));
}

/** A prompt that may be shortened can grow by more than what follows. */
const TRUNCATING_FIELDS = fieldsWhere(({ shortensPrompt }) => shortensPrompt === true);

/** A smaller body is not hashed: its bytes are a bound that is good enough. */
const MIN_HASHED_BYTES = 4096;

/** Adds the beginnings of a prompt that its provider may have counted. */
async function withBeginnings(
  request: TargetRequest,
  bound: UsageUpperBound,
  hasher: Pick<PromptHasher, 'beginnings'>,
  maxHashes: number,
): Promise<UsageUpperBound> {
  const { body, itemTexts, json, chatBody, url, traits, refusedBetas } = request;
  const { promptTokens, likelyPromptTokens, models } = bound;
  if (json.length < MIN_HASHED_BYTES || !isCountable(request, bound)) return bound;
  const target = [traits.target.provider.id, traits.target.apiKey, url].join('\n');
  const headers = [traits.scope.api, ...refusedBetas].join('\n');
  const beginnings = await hasher.beginnings({ body, target, itemTexts }, headers);
  const whole = beginnings.at(-1);
  const [model] = models;
  if (whole === undefined || model === undefined) return bound;
  const bytes = bytesOf(json);
  // All images: those of the beginning count twice.
  const imageTokens = mediaOf(chatBody).images * (traits.target.provider.imageTokens ?? MAX_IMAGE_TOKENS);
  const hashedBeginnings = beginnings.slice(-maxHashes).map(({ hash, bytes: ofBeginning }) => ({
    hash,
    more: tokensOf(Math.max(0, bytes - ofBeginning), imageTokens + ADDED_TOKENS),
  }));
  return {
    ...bound,
    prompts: [{ tokens: promptTokens, likelyTokens: likelyPromptTokens, beginnings: hashedBeginnings }],
    hashes: new Map([[model.address, whole.hash]]),
  };
}

/**
 * Whether the same prompt is counted the same the next time: by the one model that its maker has under this name, and with all of it in
 * the body.
 */
function isCountable(
  { traits, body, chatBody, prompts, writesText }: TargetRequest,
  { promptTokens, models }: UsageUpperBound,
): boolean {
  const { provider, model } = traits.target;
  const isMaker = makersOf(model).some(({ id }) => id === provider.id);
  const isInBody = !mediaOf(chatBody).isUnbounded;
  const isWhole = !TRUNCATING_FIELDS.some((field) => body[field] !== undefined);
  return (
    isMaker &&
    isWhole &&
    isInBody &&
    models.length === 1 &&
    prompts === 1 &&
    writesText &&
    promptTokens < MAX_PROMPT_TOKENS
  );
}

function notWhole(param: string): ApiError {
  const message = `Because this key has limits, ${param} must be a whole number of at least 1`;
  return apiError('invalid_request', message, param);
}

/** How many choices each prompt is billed for; undefined where that is not a whole number of at least 1. */
function readChoices({ n, best_of }: JsonObject): number | undefined {
  const counts = [readCount(n ?? 1) ?? 0, readCount(best_of ?? 1) ?? 0];
  return Math.min(...counts) < 1 ? undefined : Math.max(...counts);
}

/** The body of a passthrough is measured itself; a translated one by the chat, whose size is about the same. */
function promptTokensOf(
  { body, json, form, chatBody, traits, writesText, hasWholePrompt }: TargetRequest,
  models: readonly string[],
): PromptTokens {
  const { imageTokens, windows = [], searchingModels = [] } = traits.target.provider;
  const canSearch = models.some((model) => matchesAnyGlob(searchingModels, model));
  if (!hasWholePrompt || canSearch) return readTokensOf(body, json, 1);
  const windowOf = (model: string) =>
    windows.find((row) => matchesAnyGlob(row.models, model))?.tokens ?? MAX_PROMPT_TOKENS;
  const isRewritten = form.kind === 'native' && traits.passthrough === null;
  return maxPromptTokens(chatBody, isRewritten ? JSON.stringify(chatBody) : json, {
    ...(imageTokens !== undefined && { imageTokens }),
    addedTokens: writesText ? ADDED_TOKENS : 0,
    window: Math.max(...models.map(windowOf)),
  });
}

/** The largest context window of a public model with known prices (xAI's grok-4-fast; checked 2026-11-22). */
export const MAX_PROMPT_TOKENS = 2 * 1024 * 1024;

/** Hidden system prompts, mostly for tools: Anthropic documents up to 735 tokens (2026-11-22). Embeddings have none. */
const ADDED_TOKENS = 1024;

/** Fields that chat templates write in another form: with indents, or with `\u` escapes. */
const REWRITTEN_FIELDS = fieldsWhere(({ isRewritten }) => isRewritten === true);

/** Fields that make the provider search, read, or continue from what it stores. */
const READING_FIELDS = fieldsWhere(({ reads }) => reads !== undefined);
/** Tools that the client runs. The provider runs all others, and what they read becomes part of the prompt. */
const CLIENT_TOOLS = ['function', 'custom'];

/** The default of Qwen's vision models, the highest among self-hosted models (model cards, 2026-11-22). */
const MAX_IMAGE_TOKENS = 16_384;

interface PromptBounds {
  /** The most tokens of one image at this provider; absent: it is not known. */
  readonly imageTokens?: number;
  /** The most tokens that the provider adds. */
  readonly addedTokens?: number;
  /** The largest context window of any model that may serve the request; absent: that of all models. */
  readonly window?: number;
}

const encoder = new TextEncoder();

/**
 * The most tokens that a prompt can have with any tokenizer. All tokenizers in use fall back to bytes, so a token is at least one
 * byte of UTF-8. The body's JSON contains every text of the prompt, with more bytes around a message than a chat template adds
 * tokens. What templates rewrite counts twice, and an allowance covers what providers add. Content that the body does not show,
 * such as pages of a file or content at a URL, counts as the largest context window, and so does every shape that is not known.
 * @param body as it is sent
 * @param json the body's JSON text
 */
export function maxPromptTokens(
  body: JsonObject,
  json: string,
  {
    imageTokens = MAX_IMAGE_TOKENS,
    addedTokens = ADDED_TOKENS,
    window = MAX_PROMPT_TOKENS,
  }: PromptBounds = {},
): PromptTokens {
  const prompts = Math.max(1, readArray(body.prompt).length, readArray(body.input).length);
  const media = mediaOf(body);
  if (media.isUnknown) return tokensOf(0, prompts * MAX_PROMPT_TOKENS);
  if (isReading(body)) return readTokensOf(body, json, prompts);
  // It is read once, and a longer prompt is refused.
  if (media.isUnbounded) return tokensOf(0, prompts * window);
  const rewritten = REWRITTEN_FIELDS.map((field) => body[field]).filter((value) => value !== undefined);
  const bytes = bytesOf(json) + bytesOf(JSON.stringify(rewritten)) - media.imageBytes;
  return tokensOf(bytes, addedTokens + media.images * imageTokens, prompts * window);
}

/** Of texts: those of current models have three to five bytes in a token of English or code, and about two in other languages. */
const LIKELY_BYTES_PER_TOKEN = 2;

/** @param fixed tokens of what is no text */
function tokensOf(bytes: number, fixed: number, max = Number.POSITIVE_INFINITY): PromptTokens {
  const likely = Math.ceil(bytes / LIKELY_BYTES_PER_TOKEN) + fixed;
  return { tokens: Math.min(bytes + fixed, max), likelyTokens: Math.min(likely, max) };
}

/**
 * What a search is likely to add to a prompt: OpenAI bills the content of one as 8,000 tokens at some models
 * (https://platform.openai.com/docs/pricing, 2026-11-23).
 */
export const LIKELY_SEARCHED_TOKENS = 8000;

/** Parts and references of which the body shows neither the text nor the size. Quotes inside a JSON text are escaped and do not match. */
const UNSEEN_PARTS = [
  ...words('input_file file document image input_image image_url input_audio item_reference').map(
    (type) => `"type":"${type}"`,
  ),
  ...['"file_id":', '"file_url":'],
];

/** Of a prompt to which the provider may add. Only where all that it adds are results of searches, it is likely to have little more. */
function readTokensOf(body: JsonObject, json: string, prompts: number): PromptTokens {
  const tokens = prompts * MAX_PROMPT_TOKENS;
  const hasSearchesOnly =
    !hasReadingField(body) &&
    !UNSEEN_PARTS.some((part) => json.includes(part)) &&
    readArray(body.tools).every(
      (tool) => isClientTool(tool) || (isObject(tool) && (isSearch(tool) || tool.type === 'namespace')),
    );
  if (!hasSearchesOnly) return { tokens, likelyTokens: tokens };
  const { likelyTokens } = tokensOf(bytesOf(json), ADDED_TOKENS + LIKELY_SEARCHED_TOKENS, tokens);
  return { tokens, likelyTokens };
}

function bytesOf(text: string): number {
  return encoder.encode(text).length;
}

/** The most tokens of a value whose texts a provider reads. */
function maxTokensOf(value: unknown): number {
  return bytesOf(JSON.stringify(value));
}

function isReading(body: JsonObject): boolean {
  return hasReadingField(body) || !readArray(body.tools).every(isClientTool);
}

function hasReadingField(body: JsonObject): boolean {
  const isReadingField = (field: string) => body[field] !== undefined && body[field] !== null;
  // A prompt that is an object refers to one that the provider stores.
  return isObject(body.prompt) || READING_FIELDS.some(isReadingField);
}

function isClientTool(tool: unknown): boolean {
  if (!isObject(tool)) return true;
  const type =
    readText(tool.type) ?? (tool.function === undefined && tool.name === undefined ? '' : 'function');
  return CLIENT_TOOLS.includes(type);
}

/** The search tools of OpenAI, Anthropic, DeepSeek and xAI (`web_search_20250305`, `web_search_preview`, …), and of Google. */
const SEARCH_TOOLS = /^(?:web_search|x_search|google_?search)/i;

/** Fields of a chat that enable searches. */
const SEARCH_FIELDS = fieldsWhere(({ reads }) => reads === 'searches');

/**
 * The most searches that the provider may run and bill: 0 without a search tool, null where nothing limits them.
 * The limits are `max_uses` of Anthropic's tools (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool) and
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

/**
 * A field that may set a longer lifetime of cached prompts: `cache_control.ttl` at Anthropic, `prompt_cache_options.ttl` and
 * `prompt_cache_retention` at OpenAI. Quotes inside a JSON text are escaped and do not match.
 */
const CACHE_TIMES = /"(?:ttl|prompt_cache_retention)"/;

const TIER_FIELDS = fieldsWhere(({ plainTiers }) => plainTiers !== undefined);

/**
 * The requested tier that may cost more than the table's price, such as OpenAI's `priority`, under its name in prices and responses.
 * Several are joined by a plus.
 */
function premiumTier(body: JsonObject): string | undefined {
  const tiers = TIER_FIELDS.flatMap((field) => {
    const tier = body[field] ?? undefined;
    if (tier === undefined) return [];
    if (typeof tier !== 'string') return ['unknown'];
    return fieldOf(field).plainTiers?.includes(tier) ? [] : [tier];
  });
  return tiers.length === 0 ? undefined : tiers.join('+');
}
