/**
 * Google's enums by name and by number: clients with `$alt=json;enum-encoding=int` send and read numbers. From the protos of
 * googleapis/googleapis, google/ai/generativelanguage/v1beta (read 2026-11-28).
 */
import { isObject, type JsonObject, mapList, mapValues, ownValue } from '../../shared/json.ts';
import { words } from '../../shared/words.ts';

/**
 * The names in the order of their numbers, from 0 on, by the keys that have them. Those of Vertex AI are the same, but
 * for the rarer finishes.
 */
const NAMES = {
  type: words('TYPE_UNSPECIFIED STRING NUMBER INTEGER BOOLEAN ARRAY OBJECT NULL'),
  mode: words('MODE_UNSPECIFIED AUTO ANY NONE VALIDATED'),
  finishReason: words(
    'FINISH_REASON_UNSPECIFIED STOP MAX_TOKENS SAFETY RECITATION OTHER LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL IMAGE_SAFETY UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS',
  ),
  blockReason: words('BLOCK_REASON_UNSPECIFIED SAFETY OTHER BLOCKLIST PROHIBITED_CONTENT IMAGE_SAFETY'),
  category: words(
    'HARM_CATEGORY_UNSPECIFIED HARM_CATEGORY_DEROGATORY HARM_CATEGORY_TOXICITY HARM_CATEGORY_VIOLENCE HARM_CATEGORY_SEXUAL HARM_CATEGORY_MEDICAL HARM_CATEGORY_DANGEROUS HARM_CATEGORY_HARASSMENT HARM_CATEGORY_HATE_SPEECH HARM_CATEGORY_SEXUALLY_EXPLICIT HARM_CATEGORY_DANGEROUS_CONTENT HARM_CATEGORY_CIVIC_INTEGRITY',
  ),
  probability: words('HARM_PROBABILITY_UNSPECIFIED NEGLIGIBLE LOW MEDIUM HIGH'),
  modality: words('MODALITY_UNSPECIFIED TEXT IMAGE VIDEO AUDIO DOCUMENT'),
  responseModality: words('MODALITY_UNSPECIFIED TEXT IMAGE AUDIO'),
  trafficType: words('TRAFFIC_TYPE_UNSPECIFIED ON_DEMAND PROVISIONED_THROUGHPUT'),
  language: words('LANGUAGE_UNSPECIFIED PYTHON'),
  outcome: words('OUTCOME_UNSPECIFIED OUTCOME_OK OUTCOME_FAILED OUTCOME_DEADLINE_EXCEEDED'),
} as const satisfies Record<string, readonly string[]>;

type EnumKey = keyof typeof NAMES;

/** The name of an enum's value; undefined: it is none. */
export function enumName(key: EnumKey, value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  return typeof value === 'number' ? NAMES[key][value] : undefined;
}

/** Below these keys are values of tools and of pages, whose keys are their own. */
const FOREIGN: ReadonlySet<string> = new Set(
  words('args functionResponse toolCall toolResponse groundingMetadata'),
);

/** A response with its enums as numbers; a name without a number stays. The same value if it has none. */
export function withEnumNumbers(response: JsonObject): JsonObject {
  return mapValues(response, (value, key) => {
    const number = typeof value === 'string' ? numberOf(key, value) : -1;
    if (number >= 0) return number;
    if (FOREIGN.has(key)) return value;
    return Array.isArray(value) ? mapList(value, inNumbers) : inNumbers(value);
  });
}

function inNumbers(value: unknown): unknown {
  return isObject(value) ? withEnumNumbers(value) : value;
}

function numberOf(key: string, name: string): number {
  return ownValue<readonly string[]>(NAMES, key)?.indexOf(name) ?? -1;
}

/** The object with its keys in camel case: clients send both spellings. If a key is present in both, the later one is used. */
export function inCamelCase(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [camel(key), value]));
}

function camel(key: string): string {
  return key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
