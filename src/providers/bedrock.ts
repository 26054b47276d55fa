/**
 * AWS Bedrock by its OpenAI and Anthropic endpoints and by Converse, at two hosts: Runtime and Mantle. `E` is
 * https://docs.aws.amazon.com/bedrock/latest/userguide/endpoints.html, `R` its page inference-responses-api, `M` its page
 * inference-messages-api, `G` ENTERPILOT/GoModel#544 (2026-07-17); all as of 2026-11-28. Recordings named here are of 2025 to 2026-10.
 */
import type { ConverseFamilies, ConverseFamily } from '../protocols/bedrock-converse/family.ts';
import { converseForm, conversePath } from '../protocols/bedrock-converse/request-writer.ts';
import { bedrockConverse } from '../protocols/bedrock-converse/upstream-reader.ts';
import { AWS_REGION, awsDomain } from '../shared/aws-region.ts';
import { type JsonObject, keepEntries, readCount } from '../shared/json.ts';
import { words } from '../shared/words.ts';
import { CLAUDE_FAMILIES } from './anthropic.ts';
import { compatibleProfile, RESPONSES_API, RESPONSES_PASSTHROUGH, TOLERANT } from './compatible.ts';
import { bearer } from './credential.ts';
import { MISTRAL_CALL_IDS } from './mistral.ts';
import type { MakerModel, Profile, Provider } from './provider.ts';
import type { RefusalRules } from './refusals.ts';
import { claudeOf, gptOf } from './resold.ts';

/** The makers in Bedrock's names of models, and whose rules and prices are known here under another id. */
const MAKERS: Readonly<Record<string, string>> = {
  moonshotai: 'moonshot',
  google: 'gemini',
};

/**
 * `us.anthropic.claude-sonnet-4-5-20250929-v1:0`: an inference profile, the maker, the model, its version. Recorded names: bedrock--*,
 * 2025 to 2026-10.
 */
const NAME =
  /^(?:([a-z]{2}|apac|global|us-gov)\.)?([a-z][a-z0-9]{2,31})\.(.{1,200}?)(?:-v\d{1,3})?(?::\d{1,4}k?)?$/;

/** Profiles for several regions, and those of an account, whose names say nothing of their model. */
const PROFILE = /^(?:[a-z]{2}|apac|global|us-gov)\.[a-z][a-z0-9]{2,31}\.|^arn:/;

/** Global profiles have the maker's price, all others a tenth more: AWS's prices in @pydantic/genai-prices 0.1.8 (2026-11-28). */
const REGIONAL_FACTOR = 1.1;

function makerOf(name: string): MakerModel | null {
  const [, profile, maker, model] = NAME.exec(name) ?? [];
  if (maker === undefined || model === undefined) return null;
  return {
    maker: MAKERS[maker] ?? maker,
    // DeepSeek's versions are the whole name: `deepseek.v3.2`.
    model: maker === 'deepseek' ? `deepseek-${model}` : model,
    ownName: `${maker}.${model}`,
    ...(profile !== 'global' && { priceFactor: REGIONAL_FACTOR }),
  };
}

const REFUSALS: RefusalRules = {
  // A 403, also of a key after its 12 hours: "Authentication failed: Please make sure your API Key is valid."; "The security token included
  // in the request is invalid.": recorded, bedrock--refused-auth.
  bad_credential:
    /\bAuthentication failed\b|\bmake sure your API Key is valid\b|\bsecurity token included in the request is\b/i,
  // 400 and 404: recorded, bedrock--refused-unknown-model, -retired-model, -bare-id.
  missing_model:
    /\bprovided model identifier is invalid\b|\bmodel version has reached the end of its life\b|\bwith on-demand throughput isn['\u2019]t supported\b/i,
  // Recorded, bedrock--refused-context-length; the others are OpenAI's and Anthropic's own.
  context_length:
    /\bInput Tokens Exceeded\b|\bInput is too long for requested model\b|\bexceeds the context window\b|\bprompt is too long\b/i,
};

/**
 * Each response counts its calls from `call_0`: recorded, bedrock-mantle--call0-step1 to 4, 2026-07. Other models'
 * calls have ids of their own.
 */
const QUIRKS = { absentToolCallId: /^call_\d{1,4}$/ } as const;

/** M: an API key is a bearer token. */
const CLAUDE = claudeOf({ credential: bearer, refusals: REFUSALS });

/** Bound to the account's key: recorded, bedrock-mantle--call0-step4, 2026-07. */
const REASONING = { reasoningPrefix: 'rsn_' } as const;

const GPT = gptOf({ ...REASONING, quirks: QUIRKS, refusals: REFUSALS });

/** Open models of many makers, behind servers of AWS that ignore unknown fields. */
const OPEN: Profile = {
  ...compatibleProfile('bedrock', [], TOLERANT),
  quirks: QUIRKS,
  refusals: REFUSALS,
};

/** The rule for ids of calls belongs to Mistral's models, so it also holds here. */
const OPEN_MISTRAL: Profile = {
  ...OPEN,
  ...compatibleProfile('bedrock', [], {
    ...TOLERANT,
    messages: { ...TOLERANT.messages, toolCallIds: MISTRAL_CALL_IDS },
  }),
};

/**
 * R: gpt-oss; G: Gemma 4 and Grok, which have both APIs (sebsto/swift-bedrock-library v1.17.0, 2026-06-16). GPT has
 * Responses alone at Mantle, by its refusal ("The model 'openai.gpt-5.6-terra' does not support the
 * '/v1/chat/completions' API", enricoros/big-AGI#1167, 2026-08-04), after which chat requests go there.
 */
const OPEN_WITH_RESPONSES: Profile = {
  ...OPEN,
  responses: RESPONSES_API,
  passthrough: RESPONSES_PASSTHROUGH,
};

/** G: these are below `/openai/v1`, with OpenAI's newer models. */
const BELOW_OPENAI = /^(?:openai\.gpt-\d|google\.gemma-4|xai\.grok)/;

const OPENAI_PATH = '/openai/v1';
const PLAIN_PATH = '/v1';

/** Ids that AWS makes, and those of other providers that it takes: recorded with `.` and `:`, bedrock--kimi-after-tool. */
const CALL_IDS = /^[a-zA-Z0-9_.:-]{1,64}$/;

const PLAIN: ConverseFamily = {
  checked: '2026-11-28',
  effort: 'none',
  reasoningBack: 'signed',
  callIds: CALL_IDS,
};

const CLAUDE_FAMILY: ConverseFamily = {
  ...PLAIN,
  effort: 'claude',
  // The pattern of Anthropic's own ids.
  callIds: /^[a-zA-Z0-9_-]{1,64}$/,
};

/** The Claude models without a prompt cache. That of Claude 3.5 Sonnet was only a preview. */
const UNCACHED_CLAUDE = words(`
  claude-v* claude-instant* claude-3-opus* claude-3-sonnet* claude-3-haiku* claude-3-5-sonnet*
`);
/** The Claude models whose caches have no `ttl`: it exists from Claude 4.5 on. */
const SHORT_CACHED_CLAUDE = ['claude-3-*', 'claude-sonnet-4-20*', 'claude-opus-4-20*', 'claude-opus-4-1*'];

/** The families that differ at Converse, by their makers' names. */
const CONVERSE_FAMILIES: ConverseFamilies = {
  claude: CLAUDE_FAMILIES,
  rows: [
    // 400 "messages.0.content.2.type: Field required" behind a document that is no PDF: aws/aws-sdk-java-v2#6277,
    // 2026-08-05. Caches: https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html (2026-11-28).
    // Citations: recorded, bedrock--claude-citation.
    { ...CLAUDE_FAMILY, models: UNCACHED_CLAUDE },
    {
      ...CLAUDE_FAMILY,
      models: SHORT_CACHED_CLAUDE,
      cachePoints: { inTools: true, ttl: false, behindDocuments: 'pdf' },
      takesCitations: true,
    },
    {
      ...CLAUDE_FAMILY,
      models: ['claude*', '*anthropic.claude*'],
      cachePoints: { inTools: true, ttl: true, behindDocuments: 'pdf' },
      takesCitations: true,
    },
    {
      ...PLAIN,
      // Nova 2 reasons by an effort: recorded, bedrock--nova2-reasoning. Its other facts are those of the next row.
      models: ['nova-2*'],
      effort: 'nova',
      efforts: ['low', 'medium', 'high'],
      reasoningBack: 'none',
      topK: ['inferenceConfig', 'topK'],
      cachePoints: { inTools: false, ttl: false },
      refusedKeywords: ['$defs', 'definitions', '$schema'],
      // Recorded, bedrock--nova2-grounding.
      searchTool: 'nova_grounding',
    },
    {
      ...PLAIN,
      models: ['nova-*'],
      // `topK`: recorded, bedrock--nova-guardrail-after-text.
      topK: ['inferenceConfig', 'topK'],
      // Caches are in `system` and `messages`: the page of prompt caching above.
      cachePoints: { inTools: false, ttl: false },
      // 400 "extraneous key [$defs] is not permitted": strands-agents/sdk-python#676 and others, 2025.
      refusedKeywords: ['$defs', 'definitions', '$schema'],
    },
    // Recorded, bedrock--gpt-oss-effort-high. Its reasoning is accepted back: 567-labs/instructor#2682, 2026-09-23.
    {
      ...PLAIN,
      models: ['gpt-*'],
      effort: 'word',
      efforts: ['low', 'medium', 'high'],
      reasoningBack: 'texts',
    },
    // As a text, it answers with a stray `<think>`: recorded, bedrock--kimi-after-tool.
    { ...PLAIN, models: ['kimi-*', 'minimax-*'], reasoningBack: 'texts' },
    // 400 "User messages cannot contain reasoning content": langchain-ai/langchain-aws#401, 2025-03-13.
    { ...PLAIN, models: ['deepseek*', 'r1*', 'v3*'], reasoningBack: 'none' },
    {
      ...PLAIN,
      models: ['mistral*', 'mixtral*', 'ministral*', 'magistral*', 'pixtral*', 'devstral*', 'voxtral*'],
      callIds: MISTRAL_CALL_IDS,
      // `auto` and `any` alone: langchain-ai/langchain-aws#235, 2024-10-10.
      lacksNamedChoice: true,
    },
    { ...PLAIN, models: ['palmyra*'], lacksStatus: true },
    PLAIN,
  ],
};

/** What `count-tokens` counts. */
const COUNTED = ['messages', 'system', 'toolConfig', 'additionalModelRequestFields'];

/**
 * A profile "doesn't support counting tokens", the model of the same name does: recorded,
 * bedrock--refused-count-profile, -count-tokens-of-profile.
 */
function countPath(model: string): string {
  const bare = model.replace(/^(?:[a-z]{2}|apac|global|us-gov)\.(?=[a-z][a-z0-9]{2,31}\.)/, '');
  return `/model/${encodeURIComponent(bare.toWellFormed())}/count-tokens`;
}

/** AWS's own protocol, for all models. @param guardrail the deployment's; absent: that of each request */
function converseProfile(guardrail?: JsonObject): Profile {
  return {
    id: 'bedrock',
    hosts: [],
    endpoints: {
      chat: {
        path: conversePath,
        request: converseForm(CONVERSE_FAMILIES, guardrail),
        protocol: bedrockConverse,
      },
    },
    refusals: REFUSALS,
    // No byte for 125 s while the arguments of a call are made: OpenRouterTeam/ai-sdk-provider#440, 2026-03-12.
    longestSilenceMs: 240_000,
    tokenCounter: {
      path: countPath,
      request: (body) => ({ input: { converse: keepEntries(body, (field) => COUNTED.includes(field)) } }),
      read: ({ inputTokens }) => readCount(inputTokens),
    },
  };
}

const CONVERSE = converseProfile();

/**
 * Whether Converse is the API of a model: of Runtime's profiles and ids (`…-v1:0`), and of makers that Mantle does not list (recorded,
 * bedrock-mantle--models). Claude and OpenAI's models have their makers' APIs.
 */
function isForConverse(model: string): boolean {
  if (isClaude(model) || isOpenAi(model)) return false;
  return isOfRuntime(model) || RUNTIME_MAKER.test(model);
}

const RUNTIME_MAKER = /^(?:amazon|meta|cohere|ai21|stability|moonshot|luma|twelvelabs)\./;
/** The version at the end of an id, such as `:0`. */
const VERSION = /:\d{1,4}k?$/;

function isOfRuntime(model: string): boolean {
  return PROFILE.test(model) || VERSION.test(model);
}

type BedrockSetting =
  | 'AWS_BEARER_TOKEN_BEDROCK'
  | 'AWS_ACCESS_KEY_ID'
  | 'AWS_SECRET_ACCESS_KEY'
  | 'AWS_SESSION_TOKEN'
  | 'AWS_ROLE_ARN'
  | 'AWS_REGION'
  | 'BEDROCK_BASE_URL'
  | 'BEDROCK_MANTLE_BASE_URL';

export const bedrock: Provider<BedrockSetting> = {
  ...OPEN,
  ...REASONING,
  id: 'bedrock',
  name: 'AWS Bedrock',
  // Of long-term and of short-term keys (from memory, 2026-11-28).
  keyPrefixes: ['ABSK', 'bedrock-api-key-'],
  apiKeySettings: ['AWS_BEARER_TOKEN_BEDROCK'],
  auth: {
    kind: 'aws',
    accessKeyId: 'AWS_ACCESS_KEY_ID',
    secretAccessKey: 'AWS_SECRET_ACCESS_KEY',
    sessionToken: 'AWS_SESSION_TOKEN',
    role: 'AWS_ROLE_ARN',
    region: 'AWS_REGION',
  },
  baseUrlSettings: ['BEDROCK_BASE_URL', 'BEDROCK_MANTLE_BASE_URL'],
  defaultBaseUrl: null,
  otherNames: ['aws bedrock', 'amazon bedrock'],
  otherApis: { 'bedrock-converse': converseProfile },
  cloud: {
    parameters: [
      {
        setting: 'AWS_REGION',
        form: AWS_REGION,
        what: 'a region such as us-east-1',
        isOfHost: true,
      },
    ],
    hosts: {
      runtime: {
        setting: 'BEDROCK_BASE_URL',
        awsService: 'bedrock',
        origin: ({ AWS_REGION: region = '' }) => `https://bedrock-runtime.${region}.${awsDomain(region)}`,
      },
      mantle: {
        setting: 'BEDROCK_MANTLE_BASE_URL',
        awsService: 'bedrock-mantle',
        origin: ({ AWS_REGION: region = '' }) => `https://bedrock-mantle.${region}.api.aws`,
      },
    },
    // E: inference profiles are Runtime's, as are ids with a version (`…-v1:0`), which Mantle does not list (recorded,
    // bedrock-mantle--models, and https://docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions.html,
    // 2026-11-28). Bare names are Mantle's.
    doors: [
      {
        serves: ({ model }) => isOfRuntime(model) && isClaude(model),
        ...{ host: 'runtime', path: () => '/anthropic', profile: CLAUDE },
      },
      {
        serves: ({ model }) => isClaude(model),
        ...{ host: 'mantle', path: () => '/anthropic', profile: CLAUDE },
      },
      {
        serves: ({ model }) => isOfRuntime(model) && isGpt(model),
        ...{ host: 'runtime', path: () => OPENAI_PATH, otherPath: PLAIN_PATH, profile: GPT },
      },
      {
        serves: ({ model }) => isOfRuntime(model) && isOpenAi(model),
        ...{ host: 'runtime', path: () => OPENAI_PATH, otherPath: PLAIN_PATH, profile: OPEN },
      },
      {
        serves: ({ model }) => isForConverse(model),
        ...{ host: 'runtime', path: () => '', profile: CONVERSE },
      },
      {
        serves: ({ model }) => isGpt(model),
        ...{ host: 'mantle', path: () => OPENAI_PATH, otherPath: PLAIN_PATH, profile: GPT },
      },
      {
        serves: ({ model }) => BELOW_OPENAI.test(model),
        ...{ host: 'mantle', path: () => OPENAI_PATH, otherPath: PLAIN_PATH, profile: OPEN_WITH_RESPONSES },
      },
      {
        serves: ({ model }) => isOpenAi(model),
        ...{ host: 'mantle', path: () => PLAIN_PATH, otherPath: OPENAI_PATH, profile: OPEN_WITH_RESPONSES },
      },
      {
        serves: ({ model }) => model.startsWith('mistral.'),
        ...{ host: 'mantle', path: () => PLAIN_PATH, otherPath: OPENAI_PATH, profile: OPEN_MISTRAL },
      },
      {
        serves: () => true,
        ...{ host: 'mantle', path: () => PLAIN_PATH, otherPath: OPENAI_PATH, profile: OPEN },
      },
    ],
    // Mantle: "model `X` isn't supported on this route": G.
    otherPathRefusal: /\b(?:isn['\u2019]t|is not|not) supported on this route\b/i,
    makers: ['anthropic', 'openai', 'xai', 'moonshot', 'zai', 'mistral', 'deepseek'],
    makerOf,
  },
};

function isClaude(model: string): boolean {
  return /(?:^|\.)anthropic\./.test(model);
}

function isGpt(model: string): boolean {
  return /(?:^|\.)openai\.(?:gpt-\d|o\d)/.test(model);
}

function isOpenAi(model: string): boolean {
  return /(?:^|\.)openai\./.test(model);
}
