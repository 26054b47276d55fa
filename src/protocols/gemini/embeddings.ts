/** Embeddings of Gemini's own API: writes a request in OpenAI's form as `batchEmbedContents`, and its response in OpenAI's form. */
import type { RequestForm } from '../../request-translation/translate.ts';
import { encodeBase64Bytes } from '../../shared/encoding.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  parseJson,
  readArray,
  readCount,
  readText,
} from '../../shared/json.ts';
import { modelPath } from './request-writer.ts';

/** The path below the base URL. `embedContent` would join several texts into one vector. */
export function batchEmbedPath({ model }: { readonly model?: unknown }): string {
  return `/v1beta/${modelPath(readText(model) ?? '')}:batchEmbedContents`;
}

/** The path of a request of Google's own client, whose one text is no list. */
export function embedPath({ model, input }: JsonObject): string {
  const name = modelPath(readText(model) ?? '');
  return `/v1beta/${name}:${Array.isArray(input) ? 'batchEmbedContents' : 'embedContent'}`;
}

/** Fields that are read below, or that only select the form of the response. */
const HANDLED = ['model', 'input', 'dimensions', 'encoding_format'];

/** https://ai.google.dev/api/embeddings (read 2026-11-22). At most 100 texts: lancedb/lancedb#3618, 2026-07-09. */
export const geminiEmbeddings: RequestForm = {
  kind: 'native',
  fromSettings: [],
  write: ({ extra }, { model, provider }, report) => {
    const { input, dimensions } = extra;
    const texts = typeof input === 'string' ? [input] : input;
    if (!Array.isArray(texts) || !texts.every((text) => typeof text === 'string')) {
      report.fail('input', `${provider} embeds texts, not tokens: send texts`);
    }
    for (const field of Object.keys(extra)) if (!HANDLED.includes(field)) report.drop(field);
    const name = modelPath(model);
    const size = dimensions === undefined ? {} : { outputDimensionality: dimensions };
    const requests = (Array.isArray(texts) ? texts : []).map((text: unknown) => ({
      model: name,
      content: { parts: [{ text }] },
      ...size,
    }));
    return { requests };
  },
  limit: null,
};

export interface EmbeddingsOptions {
  /** The provider's name of the model. */
  readonly model: string;
  /** The client requested base64 of 32-bit floats instead of lists of numbers. */
  readonly isBase64: boolean;
  /** For a response that reports no usage. */
  readonly estimatedTokens: number;
}

export interface ConvertedEmbeddings {
  readonly json: string;
  /** As reported; undefined if it was not. */
  readonly promptTokens: number | undefined;
}

const VECTOR = /"values"\s*:\s*(\[[-+.\deE,\s]*\])/g;

/**
 * The response in OpenAI's form. Vectors stay text, and their numbers are parsed only for base64.
 * @returns null if the text is not a list of vectors
 */
export function convertGeminiEmbeddings(
  text: string,
  options: EmbeddingsOptions,
): ConvertedEmbeddings | null {
  const vectors: string[] = [];
  const rest = parseJson(
    text.replace(VECTOR, (_, vector: string) => {
      vectors.push(vector);
      return '"values":0';
    }),
  );
  if (!isObject(rest) || vectors.length === 0) return null;
  const listed = readArray(rest.embeddings);
  if (listed.length !== vectors.length || !listed.every((one) => objectOf(one).values === 0)) return null;
  // `{"promptTokenCount", "promptTokenDetails"}`, without a total: maximhq/bifrost#7295, 2026-09-17. Earlier models report nothing.
  const promptTokens = readCount(objectOf(rest.usageMetadata).promptTokenCount);
  const embeddings = vectors.map((vector) => (options.isBase64 ? base64Of(vector) : vector));
  if (embeddings.includes(null)) return null;
  const data = embeddings.map(
    (embedding, index) => `{"object":"embedding","index":${index},"embedding":${embedding}}`,
  );
  const tokens = promptTokens ?? options.estimatedTokens;
  const usage = `{"prompt_tokens":${tokens},"total_tokens":${tokens}}`;
  const model = JSON.stringify(options.model);
  return {
    json: `{"object":"list","data":[${data.join(',')}],"model":${model},"usage":${usage}}`,
    promptTokens,
  };
}

/** The JSON text of a vector in base64; null if the vector is no list of numbers. */
function base64Of(vector: string): string | null {
  const numbers = parseJson(vector);
  if (!Array.isArray(numbers)) return null;
  const view = new DataView(new ArrayBuffer(numbers.length * Float32Array.BYTES_PER_ELEMENT));
  for (let at = 0; at < numbers.length; at++) {
    view.setFloat32(at * Float32Array.BYTES_PER_ELEMENT, Number(numbers[at]), true);
  }
  return `"${encodeBase64Bytes(new Uint8Array(view.buffer))}"`;
}
