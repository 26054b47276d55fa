/**
 * Azure OpenAI and Microsoft Foundry. `L` is https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle, `F` the foundry-sdk of
 * anthropics/anthropic-sdk-typescript (2026-08-19), `V` packages/azure of vercel/ai (2026-08-22); all as of 2026-11-28.
 */
import { compatibleProfile, TOLERANT } from './compatible.ts';
import { bearer } from './credential.ts';
import type { MakerModel, Profile, Provider } from './provider.ts';
import type { RefusalRules } from './refusals.ts';
import { claudeOf, gptOf } from './resold.ts';

/** The makers of what Foundry sells, by the beginnings of its names. A deployment has its model's name unless it was given another. */
const MAKERS: readonly (readonly [name: RegExp, maker: string])[] = [
  [/^claude-/, 'anthropic'],
  [/^(?:gpt-|o\d|codex-|computer-use-|text-embedding-|model-router)/, 'openai'],
  [/^grok-/, 'xai'],
  [/^kimi-/i, 'moonshot'],
  [/^deepseek-/i, 'deepseek'],
  [/^(?:mistral|ministral|codestral)-/i, 'mistral'],
  [/^(?:meta-)?llama-/i, 'meta'],
  [/^phi-/i, 'microsoft'],
  [/^cohere-/i, 'cohere'],
];

function makerOf(model: string): MakerModel | null {
  const [, maker] = MAKERS.find(([name]) => name.test(model)) ?? [];
  // Foundry writes some names with capitals: `Kimi-K2.5`, `DeepSeek-V3.2`.
  return maker === undefined ? null : { maker, model: model.toLowerCase() };
}

/** A token of Entra ID is a JWT, and goes as bearer. */
function credential(secret: string): Readonly<Record<string, string>> {
  return secret.startsWith('eyJ') ? bearer(secret) : { 'api-key': secret };
}

const REFUSALS: RefusalRules = {
  // A 404: "The API deployment for this resource does not exist." V.
  missing_model: /^DeploymentNotFound:|\bAPI deployment for this resource does not exist\b/i,
  // A 401, "Access denied due to invalid subscription key or wrong API endpoint": recorded, azure--refused-key.
  bad_credential: /\binvalid subscription key\b/i,
};

/** F: there is no list of models. */
const CLAUDE = claudeOf({
  refusals: REFUSALS,
  modelTraits: [
    {
      models: ['claude-opus-4-6*', 'claude-opus-4-8*'],
      contextTokens: 200_000,
      maxOutputTokens: 128_000,
      supports: { tools: true, reasoning: true, images: true },
      source: 'anomalyco/models.dev at f3fc69229 (2026-07-02), providers/azure',
      checked: '2026-11-28',
    },
  ],
});

const GPT = gptOf({ credential, refusals: REFUSALS });

const OTHERS: Profile = { ...compatibleProfile('azure', [], TOLERANT), credential, refusals: REFUSALS };

const { responses: _, passthrough: __, ...deployment } = GPT;

/**
 * An entry of `PROVIDERS` at a host of Azure: a resource, or one deployment, whose path has no Responses. What is behind its names is
 * known where the entry says so.
 */
export const azureHost: Profile = {
  ...OTHERS,
  hostPattern: /\.(?:openai\.azure\.com|services\.ai\.azure\.com|cognitiveservices\.azure\.com)$/,
  ofNamedModels: { ...deployment, id: 'azure', hosts: [] },
};

type AzureSetting =
  | 'AZURE_API_KEY'
  | 'AZURE_TENANT_ID'
  | 'AZURE_CLIENT_ID'
  | 'AZURE_CLIENT_SECRET'
  | 'AZURE_CLIENT_CERTIFICATE'
  | 'AZURE_AUTHORITY'
  | 'AZURE_RESOURCE'
  | 'AZURE_BASE_URL'
  | 'AZURE_MODELS';

export const azure: Provider<AzureSetting> = {
  ...GPT,
  id: 'azure',
  name: 'Azure',
  hosts: [],
  ownModels: [],
  apiKeySettings: ['AZURE_API_KEY'],
  auth: {
    kind: 'entra',
    tenantId: 'AZURE_TENANT_ID',
    clientId: 'AZURE_CLIENT_ID',
    secret: 'AZURE_CLIENT_SECRET',
    certificate: 'AZURE_CLIENT_CERTIFICATE',
    authority: 'AZURE_AUTHORITY',
  },
  baseUrlSettings: ['AZURE_BASE_URL'],
  defaultBaseUrl: null,
  otherNames: ['azure openai', 'azure ai', 'azure foundry', 'azure inference'],
  cloud: {
    parameters: [
      {
        setting: 'AZURE_RESOURCE',
        form: /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/,
        what: 'the name of a resource, as in https://<name>.openai.azure.com',
        isOfHost: true,
      },
    ],
    hosts: {
      openai: {
        setting: 'AZURE_BASE_URL',
        origin: ({ AZURE_RESOURCE: resource = '' }) => `https://${resource}.openai.azure.com`,
      },
      foundry: {
        setting: 'AZURE_BASE_URL',
        origin: ({ AZURE_RESOURCE: resource = '' }) => `https://${resource}.services.ai.azure.com`,
      },
    },
    doors: [
      {
        serves: ({ makerModel }) => makerModel.startsWith('claude-'),
        ...{ host: 'foundry', path: () => '/anthropic', profile: CLAUDE },
      },
      {
        serves: ({ makerModel }) => isOther(makerModel),
        ...{ host: 'openai', path: () => '/openai/v1', profile: OTHERS },
      },
      // A deployment of an unknown name is most often of OpenAI's.
      { serves: () => true, ...{ host: 'openai', path: () => '/openai/v1', profile: GPT } },
    ],
    makers: MAKERS.map(([, maker]) => maker),
    makerOf,
    modelsSetting: 'AZURE_MODELS',
  },
};

/** L: DeepSeek, Grok, Llama, Mistral and others are at the same path. */
function isOther(model: string): boolean {
  return /^(?:grok|kimi|deepseek|mistral|ministral|codestral|llama|meta-llama|phi|cohere|command|jamba|qwen|mai-|gpt-oss)/i.test(
    model,
  );
}
