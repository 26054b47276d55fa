/** The shipped prices: one file a provider (P2). */
import { ANTHROPIC } from './anthropic.ts';
import { CODESTRAL } from './codestral.ts';
import { DEEPSEEK } from './deepseek.ts';
import { GEMINI } from './gemini.ts';
import { GROQ } from './groq.ts';
import { MISTRAL } from './mistral.ts';
import { OPENAI } from './openai.ts';
import type { ShippedPrice } from './price.ts';
import { XAI } from './xai.ts';

export const SHIPPED_PRICES: readonly ShippedPrice[] = [
  ...DEEPSEEK,
  ...MISTRAL,
  ...CODESTRAL,
  ...OPENAI,
  ...ANTHROPIC,
  ...GEMINI,
  ...GROQ,
  ...XAI,
];
