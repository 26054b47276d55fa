/**
 * Embeddings of OpenAI, Mistral and Gemini, as their documents state them (read 2026-11-22):
 * https://platform.openai.com/docs/api-reference/embeddings, https://docs.mistral.ai/api/endpoint/embeddings and
 * https://ai.google.dev/api/embeddings. A vector depends only on its text or tokens. Words are tokens.
 */
import { isObject, type Json, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import type { Call } from './scene.ts';

interface EmbeddingModel {
  readonly size: number;
  /** The request may set a size. */
  readonly takesSize: boolean;
}

const MODELS: Readonly<Record<string, EmbeddingModel>> = {
  'text-embedding-3-small': { size: 1536, takesSize: true },
  'text-embedding-3-large': { size: 3072, takesSize: true },
  'text-embedding-ada-002': { size: 1536, takesSize: false },
  'mistral-embed': { size: 1024, takesSize: false },
  'codestral-embed': { size: 1536, takesSize: true },
  'gemini-embedding-001': { size: 3072, takesSize: true },
};

/** What a provider accepts in a body in OpenAI's form, and its name of the size. */
export interface EmbeddingsForm {
  readonly fields: readonly string[];
  readonly sizeField: string;
}

export const OPENAI_FORM: EmbeddingsForm = {
  fields: ['model', 'input', 'dimensions', 'encoding_format', 'user'],
  sizeField: 'dimensions',
};

export const MISTRAL_FORM: EmbeddingsForm = {
  fields: ['model', 'input', 'output_dimension', 'output_dtype', 'encoding_format', 'metadata'],
  sizeField: 'output_dimension',
};

/** Why a body is refused; undefined if it is valid. */
export function embeddingsProblem({ model, body }: Call, { fields, sizeField }: EmbeddingsForm) {
  const unknown = Object.keys(body).find((field) => !fields.includes(field));
  if (unknown !== undefined) return `Unknown parameter: '${unknown}'.`;
  if (inputsOf(body.input ?? null).length === 0) return "'$.input' is invalid.";
  const known = MODELS[model];
  if (known === undefined) return `The model \`${model}\` does not exist`;
  return body[sizeField] !== undefined && !known.takesSize
    ? 'This model does not support dimensions'
    : undefined;
}

/** The response in OpenAI's form, whose usage comes last. */
export function embeddingsObject({ model, body }: Call, { sizeField }: EmbeddingsForm): JsonObject {
  const inputs = inputsOf(body.input ?? null);
  const size = numberOf(body[sizeField]) ?? MODELS[model]?.size ?? 8;
  const data = inputs.map((input, index) => {
    const vector = vectorOf(input, size);
    return {
      object: 'embedding',
      index,
      embedding: body.encoding_format === 'base64' ? base64(vector) : vector,
    };
  });
  const tokens = inputs.map(tokensOf).reduce((sum, count) => sum + count, 0);
  return { object: 'list', data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

/** `batchEmbedContents`. */
export function geminiEmbeddingsProblem({ model, body }: Call): string | undefined {
  const requests = objectsOf(body.requests);
  const unknown = Object.keys(body).find((field) => field !== 'requests');
  if (unknown !== undefined)
    return `Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`;
  if (requests.length === 0) return '* BatchEmbedContentsRequest.requests: requests is not specified\n';
  // lancedb/lancedb#3618, 2026-07-09.
  if (requests.length > 100)
    return '* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch\n';
  return requests.some((request) => request.model !== `models/${model}`)
    ? '* BatchEmbedContentsRequest.requests[0].model: the model does not match that of the batch\n'
    : undefined;
}

/** Usage as maximhq/bifrost#7295 (2026-09-17) has it. */
export function geminiEmbeddings({ model, body }: Call): JsonObject {
  const requests = objectsOf(body.requests);
  const texts = requests.map(({ content }) =>
    objectsOf(objectOf(content).parts)
      .map(({ text }) => textOf(text))
      .join(''),
  );
  const sizes = requests.map(({ outputDimensionality }) => numberOf(outputDimensionality));
  const embeddings = texts.map((text, at) => ({
    values: vectorOf(text, sizes[at] ?? MODELS[model]?.size ?? 8),
  }));
  const tokens = texts.reduce((sum, text) => sum + tokensOf(text), 0);
  const promptTokenDetails = [{ modality: 'TEXT', tokenCount: tokens }];
  return { embeddings, usageMetadata: { promptTokenCount: tokens, promptTokenDetails } };
}

/** A text, texts, tokens, or lists of tokens. */
function inputsOf(input: Json): Json[] {
  if (typeof input === 'string') return input === '' ? [] : [input];
  if (!Array.isArray(input) || isObject(input[0])) return [];
  return typeof input[0] === 'number' ? [input] : input;
}

function tokensOf(input: Json): number {
  return Array.isArray(input) ? input.length : textOf(input).split(/\s+/).filter(Boolean).length;
}

/** Numbers that 32-bit floats represent exactly. */
export function vectorOf(input: Json, size: number): number[] {
  let seed = [...JSON.stringify(input)].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 65_521, 7);
  return Array.from({ length: size }, () => {
    seed = (seed * 171 + 11) % 65_521;
    return (seed - 32_768) / 65_536;
  });
}

function base64(vector: readonly number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString('base64');
}
