/**
 * Recorded requests of other software, which one provider accepted, at eight strict providers: each is taken, or refused for a field or a
 * value that only the provider can decide about (Q1, Q6).
 */
import { describe, expect, test } from 'vitest';
import { readRecordedRequests, requestsNote } from './recorded-requests.ts';
import { STRICT_NAMES, sendTo } from './strict-providers.ts';

/** What changes the output, and the provider does not have: Weir sends it, or refuses it itself, and never drops it (Q6). */
const OWN_RULES: readonly RegExp[] = [
  // Weir's own words.
  /does not support (?:response_format|logprobs|stop|n|presence_penalty|frequency_penalty|audio|modalities): remove it/,
  // Fields of other providers (Q7).
  /\b(?:reasoning_format|models|provider|transforms|web_search_options|audio|modalities)\b.*(?:unknown_parameter|not permitted|unsupported|Cannot find field|not supported)/is,
  /Live search is deprecated|Web search options not supported/,
  // Settings that the model or the provider does not have.
  /\b(?:logprobs|n|penalty|frequency_penalty|presence_penalty)\b.*(?:not permitted|not enabled|not supported|at most 1)/is,
  /Argument not supported: presence_penalty|Multiple candidates is not enabled/,
  /This response_format type is unavailable now/,
  // A chat client's own effort to a model that cannot reason (Q14).
  /supplied: reasoning_effort/,
  // Parts that the provider does not read.
  /(?:document_url|'file'|`file`)/,
  // A tier of another provider.
  /service_tier: must be one of/,
  // Signatures that another account's models made.
  /Thought signature is not valid|Invalid `signature`/,
];

describe.skipIf(requestsNote !== '')(`recorded requests at other providers${requestsNote}`, () => {
  const requests = readRecordedRequests().filter(
    ({ route, refusal }) => route === 'chat' && refusal === null,
  );

  test.each(STRICT_NAMES)('Q1 %s: takes each, or refuses it by a rule of its own', (name) => {
    expect(requests.length).toBeGreaterThan(40);
    const refusals = requests.flatMap(({ name: file, body }) => {
      const sent = sendTo(name, 'chat', body);
      const reason = 'code' in sent ? sent.message : sent.refusal;
      return reason === null || OWN_RULES.some((rule) => rule.test(reason)) ? [] : [`${file}: ${reason}`];
    });
    expect(refusals).toEqual([]);
  });
});
