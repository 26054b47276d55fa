/** Writes the sampling of a request as far as the model's family and its thinking leave a choice (A2). */

import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { isObject, type JsonObject } from '../../shared/json.ts';
import type { ClaudeFamily } from './family.ts';

/** With thinking no lower one is taken. https://platform.claude.com/docs/en/build-with-claude/extended-thinking (2026-11-22) */
const MIN_TOP_P_THINKING = 0.95;
const MAX_TEMPERATURE = 1;

const FIELDS = ['temperature', 'top_p', 'top_k'] as const;

/** What is refused is left out and told; OpenAI's default of 1 says nothing. Clients send these without being asked: a refusal would break them. */
export function claudeSampling(
  body: JsonObject,
  { thinking }: JsonObject,
  { sampling }: ClaudeFamily,
  report: TranslationReport,
): JsonObject {
  const isThinking = isObject(thinking) && (thinking.type === 'enabled' || thinking.type === 'adaptive');
  const sent: Record<string, unknown> = {};
  for (const field of FIELDS) {
    const value = body[field];
    if (value === undefined || (value === 1 && field !== 'top_k')) continue;
    const isTaken = sampling !== 'none' && (!isThinking || isTakenThinking(field, value));
    // 400 "`temperature` and `top_p` cannot both be specified for this model": SalesforceAIResearch/MCP-Universe#49, 2026-01-26.
    const isSecond = sampling === 'one' && field === 'top_p' && sent.temperature !== undefined;
    if (!isTaken || isSecond) report.drop(field);
    else sent[field] = field === 'temperature' ? inRange(value, report) : value;
  }
  return sent;
}

/** 400 "`temperature` may only be set to 1 when thinking is enabled". */
function isTakenThinking(field: (typeof FIELDS)[number], value: unknown): boolean {
  return field === 'top_p' && typeof value === 'number' && value >= MIN_TOP_P_THINKING;
}

/** OpenAI's reaches to 2. */
function inRange(temperature: unknown, report: TranslationReport): unknown {
  if (typeof temperature !== 'number' || temperature <= MAX_TEMPERATURE) return temperature;
  report.change('temperature');
  return MAX_TEMPERATURE;
}
