/** Reads the settings of a chat request. */
import type { RequestSettings, ResponseFormat } from '../../canonical/conversation.ts';
import { readOutputLimit } from '../../fitting/output-limit.ts';
import { requestedEffort } from '../../request-translation/effort.ts';
import { isObject, type JsonObject, objectOf, readText } from '../../shared/json.ts';

/** @param fields without nulls */
export function readRequestSettings(fields: JsonObject): RequestSettings {
  const { max_tokens, max_completion_tokens = max_tokens, stop = [], reasoning } = fields;
  const { thinking, output_config, web_search_options: search, metadata } = fields;
  const tokens = readOutputLimit(fields);
  return {
    outputLimit: tokens === undefined ? { raw: max_completion_tokens } : (tokens ?? undefined),
    stop: (Array.isArray(stop) ? stop : [stop]).filter((text) => text !== ''),
    format: readFormat(fields.response_format),
    effort: requestedEffort(fields),
    excludesReasoning: objectOf(reasoning).exclude === true,
    thinking: isObject(thinking) ? thinking : undefined,
    outputConfig: objectOf(output_config),
    search: isObject(search) ? search : undefined,
    user: readText(fields.safety_identifier) ?? readText(fields.user),
    metadata: objectOf(metadata),
    plain: fields,
  };
}

/** Some clients send the schema beside the type, as Responses has it. */
function readFormat(raw: unknown): ResponseFormat | undefined {
  if (!isObject(raw) || raw.type === 'text') return undefined;
  const { type, json_schema } = raw;
  if (type !== 'json_schema' && !isObject(json_schema)) {
    return { kind: type === 'json_object' ? type : 'unknown', raw };
  }
  const { schema } = objectOf(json_schema, raw);
  return { kind: 'json_schema', schema: isObject(schema) ? schema : undefined, raw };
}
