/** The models that the probe uses, as of 2026-11-21, and the base URLs of providers that only have a profile. */

export interface ProbeDefaults {
  readonly baseUrl?: string;
  /** The cheapest model that shows the provider's behaviour. */
  readonly model?: string;
  /** The model for `prompt` and `suffix`; without one, recordings of those routes are skipped. */
  readonly fimModel?: string;
}

/** By the id of a provider or profile. Self-hosted servers have no default model. */
export const DEFAULTS: Readonly<Record<string, ProbeDefaults>> = {
  deepseek: { model: 'deepseek-flash', fimModel: 'deepseek-flash' },
  mistral: { model: 'mistral-small-latest', fimModel: 'codestral-latest' },
  codestral: { model: 'codestral-latest', fimModel: 'codestral-latest' },
  openai: { model: 'gpt-4o-mini', fimModel: 'gpt-3.5-turbo-instruct' },
  groq: { baseUrl: 'https://api.groq.com/openai/v1', model: 'openai/gpt-oss-20b' },
  cerebras: { baseUrl: 'https://api.cerebras.ai/v1', model: 'gpt-oss-120b' },
  xai: { baseUrl: 'https://api.x.ai/v1', model: 'grok-4.3' },
  openrouter: { baseUrl: 'https://openrouter.ai/api/v1', model: 'openai/gpt-oss-20b' },
  together: { baseUrl: 'https://api.together.xyz/v1', model: 'openai/gpt-oss-20b' },
  fireworks: {
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    model: 'accounts/fireworks/models/gpt-oss-20b',
  },
  moonshot: { baseUrl: 'https://api.moonshot.ai/v1', model: 'kimi-k3' },
  zai: { baseUrl: 'https://api.z.ai/api/paas/v4', model: 'glm-5.3' },
  gemini: {
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    model: 'gemini-3.5-flash-lite',
  },
  vllm: { baseUrl: 'http://localhost:8000/v1' },
  sglang: { baseUrl: 'http://localhost:30000/v1' },
  llamacpp: { baseUrl: 'http://localhost:8080/v1' },
  ollama: { baseUrl: 'http://localhost:11434/v1' },
};
