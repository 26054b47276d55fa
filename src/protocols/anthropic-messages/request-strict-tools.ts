/** Counts what the strict schemas of one request may have together: a tool beyond it is offered without its promise (A2). */
import { isObject, type JsonObject, readArray } from '../../shared/json.ts';
import { schemasWithin } from './request-schema.ts';

/**
 * 400 "Too many strict tools (22). The maximum number of strict tools supported is 20", "Schemas contains too many parameters with
 * union types (24 parameters with type arrays or anyOf) … limit: 16", "too many optional parameters (25) … limit: 24"
 * (camel-ai/camel#4171, 2026-07-13; elizaOS/eliza#16499, 2026-07-16). Agents that mark every tool, as OpenAI's own do, reach them.
 */
const LIMITS = { tools: 20, unions: 16, optional: 24 } as const;

type Counts = { readonly [L in keyof typeof LIMITS]: number };

export class StrictSchemas {
  #counts: Counts;

  /** @param format the schema of the answer itself, which counts too */
  constructor(format: JsonObject) {
    this.#counts = { tools: 0, ...countsOf(format) };
  }

  /** Whether a tool's schema still fits; one that does counts from now on. */
  takes(schema: JsonObject): boolean {
    const { unions, optional } = countsOf(schema);
    const counts = {
      tools: this.#counts.tools + 1,
      unions: this.#counts.unions + unions,
      optional: this.#counts.optional + optional,
    };
    const fits =
      counts.tools <= LIMITS.tools && counts.unions <= LIMITS.unions && counts.optional <= LIMITS.optional;
    if (fits) this.#counts = counts;
    return fits;
  }
}

function countsOf(schema: JsonObject): Omit<Counts, 'tools'> {
  const isUnion = Array.isArray(schema.anyOf) || readArray(schema.type).length > 1;
  const required = new Set(readArray(schema.required));
  const names = isObject(schema.properties) ? Object.keys(schema.properties) : [];
  const own = { unions: isUnion ? 1 : 0, optional: names.filter((name) => !required.has(name)).length };
  return schemasWithin(schema)
    .map(countsOf)
    .reduce((a, b) => ({ unions: a.unions + b.unions, optional: a.optional + b.optional }), own);
}
