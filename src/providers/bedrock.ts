/**
 * AWS Bedrock by its OpenAI and Anthropic endpoints, at two hosts: Runtime and Mantle. `E` is
 * https://docs.aws.amazon.com/bedrock/latest/userguide/endpoints.html, `R` its page inference-responses-api, `M` its page
 * inference-messages-api, `G` ENTERPILOT/GoModel#544 (2026-07-17); all as of 2026-11-28.
 */
import { AWS_REGION, awsDomain } from '../shared/aws-region.ts';
import { compatibleProfile, RESPONSES_API, RESPONSES_PASSTHROUGH, TOLERANT } from './compatible.ts';
import { bearer } from './credential.ts';
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

/** Each response counts its calls from `call_0`: recorded, bedrock-mantle--call0-step1 to 4, 2026-07. Other models' calls have ids of their own. */
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

/**
 * R: gpt-oss; G: Gemma 4 and Grok, which have both APIs (sebsto/swift-bedrock-library v1.17.0, 2026-06-16). GPT has Responses alone at Mantle,
 * by its refusal ("The model 'openai.gpt-5.6-terra' does not support the '/v1/chat/completions' API", enricoros/big-AGI#1167, 2026-08-04),
 * after which chat requests go there.
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
    // E: inference profiles are Runtime's. Bare names are Mantle's, which needs no profile.
    doors: [
      {
        serves: ({ model }) => PROFILE.test(model) && isClaude(model),
        ...{ host: 'runtime', path: () => '/anthropic', profile: CLAUDE },
      },
      {
        serves: ({ model }) => isClaude(model),
        ...{ host: 'mantle', path: () => '/anthropic', profile: CLAUDE },
      },
      {
        serves: ({ model }) => PROFILE.test(model) && isGpt(model),
        ...{ host: 'runtime', path: () => OPENAI_PATH, otherPath: PLAIN_PATH, profile: GPT },
      },
      {
        serves: ({ model }) => PROFILE.test(model),
        ...{ host: 'runtime', path: () => OPENAI_PATH, otherPath: PLAIN_PATH, profile: OPEN },
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
        serves: ({ model }) => model.startsWith('openai.'),
        ...{ host: 'mantle', path: () => PLAIN_PATH, otherPath: OPENAI_PATH, profile: OPEN_WITH_RESPONSES },
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
