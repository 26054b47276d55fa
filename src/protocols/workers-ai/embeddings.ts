/** Embeddings of Workers AI's own form: `{"text": […]}` gives `{"shape": […], "data": [[…]]}`. */
import type { RequestForm } from '../../request-translation/translate.ts';
import { encodeBase64Bytes } from '../../shared/encoding.ts';
import { isObject, objectOf, parseJson, readArray, readCount } from '../../shared/json.ts';
import type { ConvertedEmbeddings, EmbeddingsOptions } from '../gemini/embeddings.ts';

/** Fields that are read below, or that only select the form of the response. */
const HANDLED = ['model', 'input', 'encoding_format'];

/**
 * https://developers.cloudflare.com/workers-ai/models/bge-base-en-v1.5/, by `Ai_Cf_Baai_Bge_Base_En_V1_5_Input` of
 * @cloudflare/workers-types 5.20261026.1.
 */
export const workersAiEmbeddings: RequestForm = {
  kind: 'native',
  fromSettings: [],
  write: ({ extra }, { model, provider }, report) => {
    const texts = typeof extra.input === 'string' ? [extra.input] : extra.input;
    if (!Array.isArray(texts) || !texts.every((text) => typeof text === 'string'))
      report.fail('input', `${provider} embeds texts, not tokens: send texts`);
    for (const field of Object.keys(extra)) if (!HANDLED.includes(field)) report.drop(field);
    return { model, text: texts };
  },
  limit: null,
};

/** The response in OpenAI's form; null if the text is no list of vectors. */
export function convertWorkersAiEmbeddings(
  text: string,
  { model, isBase64, estimatedTokens }: EmbeddingsOptions,
): ConvertedEmbeddings | null {
  const response = objectOf(parseJson(text));
  const { data: rows, usage } = isObject(response.result) ? response.result : response;
  const vectors = readArray(rows).map((row) => (isObject(row) ? row.embedding : row));
  if (vectors.length === 0 || !vectors.every(isVector)) return null;
  const data = vectors.map((vector, index) => ({
    ...{ object: 'embedding', index },
    embedding: isBase64 ? encodeBase64Bytes(new Uint8Array(Float32Array.from(vector).buffer)) : vector,
  }));
  const promptTokens = readCount(objectOf(usage).prompt_tokens);
  const tokens = promptTokens ?? estimatedTokens;
  const list = { object: 'list', data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
  return { json: JSON.stringify(list), promptTokens };
}

function isVector(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((number) => typeof number === 'number');
}
