/** Servers that people run themselves, which ignore unknown fields: they differ in the name of the reasoning that they read. */
import { type RequestRules, renamed } from '../request-translation/rules.ts';
import { compatibleProfile, TOLERANT } from './compatible.ts';
import type { Profile } from './provider.ts';

/**
 * The names of models are their operators' own, so the strictest template counts: "System message must be at the beginning" by vLLM
 * (vllm-project/vllm#41114, 2026-04-28), llama.cpp (anthropics/claude-code#77698, 2026-07-15) and Ollama (ollama/ollama#17774,
 * 2026-08-15), from templates that SGLang runs as well (QwenLM/Qwen3.8#244, 2026-09-22).
 */
const ANY_TEMPLATE: RequestRules = {
  ...TOLERANT,
  // Any name of a tool is taken.
  messages: { ...TOLERANT.messages, system: [{ place: 'first' }], toolNames: /^/ },
};

/** Reads `reasoning` since 2026-01; versions differ in whether they keep the other name: vllm-project/vllm#38488, 2026-03. */
export const vllm = compatibleProfile('vllm', [], ANY_TEMPLATE);

/** Reads `reasoning_content` alone: its protocol.py, read 2026-11-21. */
export const sglang: Profile = {
  ...compatibleProfile('sglang', [], {
    ...ANY_TEMPLATE,
    messages: { ...ANY_TEMPLATE.messages, reasoning: [{ form: 'reasoning_content' }] },
  }),
  // QwenLM/Qwen3#1321, 2025-04-29.
  refusals: { context_length: /\blonger than the model's context length\b/i },
};

/** Recorded as taken, 2025-11. */
export const llamacpp: Profile = {
  ...compatibleProfile('llamacpp', [], {
    ...ANY_TEMPLATE,
    messages: { ...ANY_TEMPLATE.messages, reasoning: [{ form: 'reasoning_content' }] },
  }),
  // Reasoning is in the answer, in its content or beside it: tools/server/README.md, `reasoning_format` (from memory, 2026-11-22).
  visibleOutputModels: ['*'],
  // The recorded request llamacpp--refused-context, 2026-08.
  refusals: { context_length: /\bexceeds the available context size\b/i },
};

/** Ollama's openai.go of 2026-08-21: it has no other name for the limit, and `developer` reaches few of its renderers. */
export const ollama = compatibleProfile('ollama', [], {
  ...ANY_TEMPLATE,
  fields: { max_completion_tokens: renamed('max_tokens') },
  messages: { ...ANY_TEMPLATE.messages, roles: { developer: 'system' } },
});
