/** Rewrites the definitions of tools into what the provider takes. */
import { isObject, type JsonObject } from '../shared/json.ts';
import { keepEntries } from '../shared/objects.ts';
import type { MessageRules } from './rules.ts';
import type { TranslationReport } from './translation-report.ts';

const NO_PARAMETERS = { type: 'object', properties: {} };

export function rewriteTools(
  tools: readonly unknown[],
  rules: MessageRules,
  report: TranslationReport,
): readonly unknown[] {
  return tools.map((tool) => (isObject(tool) ? rewriteTool(tool, rules, report) : tool));
}

function rewriteTool(
  tool: JsonObject,
  { closed, refused = [], needsParameters }: MessageRules,
  report: TranslationReport,
): JsonObject {
  // A tool of another kind has other keys: the provider itself answers for those that it does not have.
  if (tool.type !== 'function' || !isObject(tool.function)) return tool;
  const kept = keep(tool, (key) => closed?.tool.includes(key) ?? !refused.includes(key), 'tools', report);
  const definition = keep(
    tool.function,
    (key) => closed?.function.includes(key) ?? true,
    'tools.function',
    report,
  );
  const parameters = needsParameters && !isObject(definition.parameters) ? { parameters: NO_PARAMETERS } : {};
  return { ...kept, function: { ...definition, ...parameters } };
}

function keep(
  object: JsonObject,
  isKept: (key: string) => boolean,
  place: string,
  report: TranslationReport,
): JsonObject {
  return keepEntries(
    object,
    (key, value) => isKept(key) && value !== null,
    (key, value) => {
      if (value !== null) report.drop(`${place}.${key}`);
    },
  );
}
