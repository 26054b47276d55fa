/** The models at which agents' loops are tested: one of each strict provider, in the gateway and the simulator of these tests. */

/** Those that think do so before every step. */
export const MODELS = [
  'deepseek/deepseek-flash',
  'mistral/mistral-small-latest',
  'groq/openai/gpt-oss-120b',
  'cerebras/gpt-oss-120b',
  'openrouter/moonshotai/kimi-k2.5',
  'xai/grok-4.3',
  'openai/gpt-4o-mini',
  'anthropic/claude-haiku-4-5',
  'anthropic/claude-sonnet-5',
  'compatible/openai/gpt-oss-20b',
];

/** They refuse a step without the signature that they gave: only what carries it back gets through. */
export const SIGNING = [
  'anthropic/claude-opus-5-5',
  'openrouter/anthropic/claude-haiku-4.5',
  'openrouter/google/gemini-3-flash-preview',
  'gemini-compatible/gemini-3-flash',
  'gemini/gemini-3-flash-preview',
  'gemini/gemini-3.8-flash',
];
