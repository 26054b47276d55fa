/** Self-hosted servers, which ignore unknown fields: vLLM, SGLang, llama.cpp and Ollama. They differ in how they accept reasoning. */
import { type RequestRules, renamed } from '../request-translation/rules.ts';
import { compatibleProfile, TOLERANT } from './compatible.ts';
import type { Profile } from './provider.ts';

/**
 * Operators choose the names of models, so the rule of the strictest chat template applies to all: "System message must
 * be at the beginning" by vLLM (vllm-project/vllm#41114, 2026-04-28), llama.cpp (anthropics/claude-code#77698,
 * 2026-07-15) and Ollama (ollama/ollama#17774, 2026-08-15), from templates that SGLang runs as well
 * (QwenLM/Qwen3.8#244, 2026-09-22).
 */
const ANY_TEMPLATE: RequestRules = {
  ...TOLERANT,
  // Every tool name is accepted.
  messages: { ...TOLERANT.messages, system: [{ place: 'first' }], toolNames: /^/ },
};

/** Accepts `reasoning` since 2026-01. Versions differ in whether they also accept the other name: vllm-project/vllm#38488, 2026-03. */
export const vllm = compatibleProfile('vllm', [], ANY_TEMPLATE);

/** Accepts only `reasoning_content`: its protocol.py, read 2026-11-21. */
export const sglang: Profile = {
  ...compatibleProfile('sglang', [], {
    ...ANY_TEMPLATE,
    messages: { ...ANY_TEMPLATE.messages, reasoning: [{ form: 'reasoning_content' }] },
  }),
  // QwenLM/Qwen3#1321, 2025-04-29.
  refusals: { context_length: /\blonger than the model's context length\b/i },
};

/** `reasoning_content` was recorded as accepted, 2025-11. */
export const llamacpp: Profile = {
  ...compatibleProfile('llamacpp', [], {
    ...ANY_TEMPLATE,
    messages: { ...ANY_TEMPLATE.messages, reasoning: [{ form: 'reasoning_content' }] },
  }),
  // The response contains the reasoning, in its content or beside it: tools/server/README.md, `reasoning_format` (from memory, 2026-11-22).
  visibleOutputModels: ['*'],
  // The recorded request llamacpp--refused-context, 2026-08.
  refusals: { context_length: /\bexceeds the available context size\b/i },
};

/** Ollama's openai.go of 2026-08-21 knows only `max_tokens`, and few of its renderers support `developer`. */
export const ollama = compatibleProfile('ollama', [], {
  ...ANY_TEMPLATE,
  fields: { max_completion_tokens: renamed('max_tokens') },
  messages: { ...ANY_TEMPLATE.messages, roles: { developer: 'system' } },
});
