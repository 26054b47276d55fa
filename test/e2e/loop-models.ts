/** The models for tests of agent loops: one of each strict provider. */

/** OpenAI's models whose chat refuses tools: Weir calls them through Responses. */
export const THROUGH_RESPONSES = ['openai/gpt-6.1-terra', 'openai/gpt-6.2-astra'];

/** Models without signatures. Reasoning models reason before every step. */
export const MODELS = [
  'deepseek/deepseek-flash',
  'mistral/mistral-small-latest',
  'groq/openai/gpt-oss-120b',
  'cerebras/gpt-oss-120b',
  'openrouter/moonshotai/kimi-k2.5',
  'xai/grok-4.3',
  'xai/grok-4.7',
  'moonshot/kimi-k3',
  'moonshot/kimi-k2.6',
  'zai/glm-5.3',
  'openai/gpt-4o-mini',
  ...THROUGH_RESPONSES,
  'anthropic/claude-haiku-4-5',
  'anthropic/claude-sonnet-5',
  'compatible/openai/gpt-oss-20b',
  'bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0',
  'bedrock/us.amazon.nova-2-lite-v1:0',
  'bedrock/moonshot.kimi-k2-thinking',
  'bedrock/mistral.mistral-large-2402-v1:0',
  'bedrock/openai.gpt-oss-20b',
  'bedrock/openai.gpt-6.1-terra',
  'azure/prod-gpt',
  'azure/claude-haiku-4-5',
];

/** Models that reject a step without the signatures of earlier steps. */
export const SIGNING = [
  'anthropic/claude-opus-5-5',
  'openrouter/anthropic/claude-haiku-4.5',
  'openrouter/google/gemini-3-flash-preview',
  'gemini-compatible/gemini-3-flash',
  'gemini/gemini-3-flash-preview',
  'gemini/gemini-3.8-flash',
];
