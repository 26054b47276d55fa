/** Checks a row's output: all frames present, in order, with all upstream data, and the end. */

import { readAnthropic } from '../../test/contract/reference-anthropic.ts';
import { geminiEvents, readGemini } from '../../test/contract/reference-gemini.ts';
import { readMessage } from '../../test/contract/reference-message.ts';
import { differences, readClient, readUpstream } from '../../test/contract/reference-reader.ts';
import { readResponsesStream } from '../../test/contract/reference-responses.ts';
import { readResponses } from '../../test/protocols/openai-responses/reading.ts';
import { checkMessages } from '../../tools/conformance/contract/check-messages.ts';
import { checkResponses } from '../../tools/conformance/contract/check-responses.ts';
import { type Content, eventsOf } from '../../tools/conformance/contract/content.ts';
import { isObject, parseJson } from '../../tools/conformance/contract/json.ts';

/**
 * What a row does to a stream: `bytes`: nothing; `frames`: writes a frame for each chunk and drops vendor events; `messages` and
 * `responses`: writes an event of that protocol for each part of a chunk; `gemini`: an element.
 */
export type Treatment = 'bytes' | 'frames' | 'messages' | 'responses' | 'gemini';

/** The error in a response, or null. */
export function problemOf(treatment: Treatment, upstream: string, client: string): string | null {
  if (treatment === 'bytes') return upstream === client ? null : 'the bytes differ from the upstream’s';
  if (treatment === 'messages') return problemOfMessage(upstream, client);
  if (treatment === 'responses') return problemOfResponses(upstream, client);
  if (treatment === 'gemini') return problemOfGemini(upstream, client);
  const wanted = countWanted(upstream);
  const got = countChunks(client);
  if (wanted !== got) return `${got} chunks instead of ${wanted}`;
  if (!client.endsWith('data: [DONE]\n\n')) return 'no [DONE] at the end';
  const found = differences(readAny(upstream), readClient(client));
  return found.length === 0 ? null : found.join('; ').slice(0, 160);
}

function problemOfMessage(upstream: string, client: string): string | null {
  if (isAnthropic(upstream)) return problemOfPassthrough(upstream, client);
  const [fault] = checkMessages(client);
  if (fault !== undefined) return fault;
  const sent = readAny(upstream).choices.get(0);
  const { text, reasoning, calls, usage } = readMessage(client);
  const got = [text, reasoning, ...calls.map((call) => call.name + call.arguments)];
  const all = sent?.toolCalls.map((call) => call.name + call.arguments) ?? [];
  if (got.join('\n') !== [sent?.text, sent?.reasoning, ...all].join('\n')) return 'text is lost';
  return usage === null ? 'no usage' : null;
}

/** Its thoughts are not asked for, and none of the bench's calls has arguments that are an object. */
function problemOfGemini(upstream: string, client: string): string | null {
  const sent = readAny(upstream).choices.get(0);
  const got = readGemini(geminiEvents(client.replaceAll('\r\n', '\n'))).choices.get(0);
  if (got?.text !== sent?.text) return 'text is lost';
  if (got?.toolCalls.length !== sent?.toolCalls.length) return 'a call is lost';
  return /"finishReason": ?"STOP"/.test(client) ? null : 'no finish';
}

const MODEL = /"model":"[^"]*"/g;

/** Passthrough changes only the model's name. */
function problemOfPassthrough(upstream: string, client: string): string | null {
  const [model = ''] = client.match(MODEL) ?? [];
  return upstream.replace(MODEL, model) === client ? null : 'the events differ from the upstream’s';
}

function isAnthropic(upstream: string): boolean {
  return upstream.startsWith('event: message_start');
}

function isResponses(upstream: string): boolean {
  return upstream.startsWith('event: response.created');
}

function readAny(upstream: string): Content {
  if (isResponses(upstream)) return readResponsesStream(upstream, 'upstream');
  if (upstream.includes('"candidates"')) return readGemini(geminiEvents(upstream));
  return isAnthropic(upstream) ? readAnthropic(upstream) : readUpstream(upstream, 'sse');
}

/** The first and the last of Anthropic's events and each text become a chunk; of Responses' events, each text and the last. */
function countWanted(upstream: string): number {
  if (isResponses(upstream)) {
    return [...upstream.matchAll(/^event: response\.(?:output_text\.delta|completed)$/gm)].length;
  }
  if (!isAnthropic(upstream)) return countChunks(upstream);
  return [...upstream.matchAll(/^event: (?:message_start|content_block_delta|message_stop)$/gm)].length;
}

/** The only expected problem: the arguments of the bench's tool calls are not JSON. */
const UPSTREAMS_FAULT = /arguments are no JSON object$/;

function problemOfResponses(upstream: string, client: string): string | null {
  if (isResponses(upstream)) return problemOfPassthrough(upstream, client);
  const fault = checkResponses(client).find((found) => !UPSTREAMS_FAULT.test(found));
  if (fault !== undefined) return fault;
  const found = differences(readAny(upstream), readResponses(client));
  // The protocol has 0 if nothing was reported.
  return (
    found.filter((difference) => !/^usage (?:cached|reasoning)/.test(difference))[0]?.slice(0, 160) ?? null
  );
}

function countChunks(text: string): number {
  let chunks = 0;
  for (const { data } of eventsOf(text)) {
    const value = data === '[DONE]' ? undefined : parseJson(data);
    if (isObject(value) && ('choices' in value || 'candidates' in value)) chunks++;
  }
  return chunks;
}

/** The same for a non-streaming response. */
export function problemOfWhole(client: string): string | null {
  const answer = parseJson(client);
  const json = JSON.stringify(answer ?? null);
  if (!isObject(answer) || answer.object !== 'chat.completion')
    return `not a completion: ${client.slice(0, 200)}`;
  return json.includes('"content":"Hello"') && json.includes('"total_tokens":5011')
    ? null
    : `text lost: ${json}`;
}
