/** Cloudflare's binding `AI` with the shape of `fetch`, so that nothing else knows how a model is called. */
import { statusOfCode } from '../canonical/error-codes.ts';
import { isObject, type JsonObject, parseJson, readText } from '../shared/json.ts';

/** `Ai` of @cloudflare/workers-types 5.20261026.1, for any model. */
export interface AiBinding {
  run(model: string, inputs: JsonObject, options: AiRunOptions): Promise<Response>;
}

interface AiRunOptions {
  readonly returnRawResponse: true;
  readonly gateway: { readonly id: string };
  /** Ends the request, and with it the model's work. Absent: nothing does. */
  readonly signal?: AbortSignal;
}

type BoundFetch = (input: Request | string, init?: RequestInit) => Promise<Response>;

/** Whether a binding is one of models. A host may have something else under the name. */
export function isAiBinding(binding: object | undefined): binding is AiBinding {
  return binding !== undefined && 'run' in binding && typeof binding.run === 'function';
}

interface AiBindingOptions {
  /** The name of the gateway of AI Gateway that requests go through. */
  readonly gateway: string;
  /** The models that a request without a body lists. */
  readonly models: readonly string[];
}

/**
 * Sends the body of a request to the model that it names, and returns the binding's own response, whose body passes through. The URL
 * and the headers are not used: the account's own rights apply, so no credential of a caller may be in them.
 */
export function fetchByBinding(ai: AiBinding, { gateway, models }: AiBindingOptions): BoundFetch {
  return async (_, init = {}) => {
    const { signal, body } = init;
    if (body === undefined || body === null) return Response.json({ data: models.map((id) => ({ id })) });
    const { model, ...inputs } = decodeBody(body);
    const options: AiRunOptions = {
      ...({ returnRawResponse: true, gateway: { id: gateway } } as const),
      ...(signal ? { signal } : {}),
    };
    try {
      return await ai.run(readText(model) ?? '', inputs, options);
    } catch (error) {
      const refusal = signal?.aborted === true ? null : refusalOf(error);
      if (refusal === null) throw error;
      return refusal;
    }
  };
}

/** Weir writes every body as the JSON text of an object. */
function decodeBody(body: BodyInit): JsonObject {
  const value = typeof body === 'string' ? parseJson(body) : undefined;
  return isObject(value) ? value : {};
}

/**
 * `3040: Capacity temporarily exceeded`, perhaps behind the error's name: cloudflare/ai,
 * gateway-core/src/workers-ai-errors.ts (2026-07-30).
 */
const NUMBERED = /\b(\d{4,5}):\s*([\s\S]{0,2000})/g;
/** What may precede the number of an unknown code: names of errors. Elsewhere in the text a number may be anything. */
const ERROR_NAMES = /^(?:[A-Za-z]{1,40}: ){0,3}$/;

/** A thrown refusal as a response with its status; null: the error has no number. */
function refusalOf(error: unknown): Response | null {
  const text = (error instanceof Error ? error.message : String(error)).slice(0, MAX_ERROR_CHARS);
  for (const { 1: code = '', 2: message = '', index } of text.matchAll(NUMBERED)) {
    const known = statusOfCode('errors', code);
    const status = known ?? (ERROR_NAMES.test(text.slice(0, index)) ? 500 : undefined);
    if (status !== undefined) return Response.json({ errors: [{ code: Number(code), message }] }, { status });
  }
  return null;
}

/** An error's text is read up to here. */
const MAX_ERROR_CHARS = 4096;
