/**
 * The output of a simulated model, independent of a provider's wire format, and its cost. The token counts are predictable:
 * - every piece is one token: a word of reasoning, text or refusal, a tool call's head, a fragment of its arguments;
 * - completion tokens are the pieces of all choices, reasoning tokens those of kind `reasoning`;
 * - prompt tokens are the words of all messages, `prompt` and `suffix`; cached ones those of the system messages, or of what a cache has;
 * - `max_tokens` (or `max_completion_tokens`) limits the pieces; the finish is then `length`.
 *
 * If the request has tools and the last message is no tool result, the model calls up to two of them. `steps:5` in a system message or
 * in the first user message starts a loop: two calls in the first turn, then one per turn, until five turns of the history
 * have called tools. The text follows. A reasoning model reasons before each of these turns. `calls:[{"name":"Write","arguments":{…}}]`
 * in any message that is not an assistant's or a tool's is such a loop with these calls, one per turn, so that a real client executes them.
 * `words:3000` in a user message makes a text of that many words. A JSON format of the request makes the text JSON.
 */
import {
  decodeObject,
  isObject,
  type Json,
  type JsonObject,
  numberOf,
  objectOf,
  objectsOf,
  textOf,
} from './json.ts';
import type { Call } from './scene.ts';

export interface Words {
  readonly kind: 'reasoning' | 'text' | 'refusal';
  readonly text: string;
}
export type CallPiece =
  /** The index counts the calls of this message; the number is unique in the conversation. */
  | { readonly kind: 'call'; readonly index: number; readonly number: number; readonly name: string }
  | { readonly kind: 'arguments'; readonly index: number; readonly text: string };
export type Piece = Words | CallPiece;

export interface Script {
  readonly pieces: readonly Piece[];
  readonly finish: string;
}

export interface Cost {
  readonly prompt: number;
  readonly completion: number;
  readonly total: number;
  readonly cached: number;
  readonly reasoning: number;
}

/** Words keep the white space before them, so that the joined pieces are the sentence. */
function splitWords(text: string): string[] {
  return text.match(/\s*\S+/g) ?? [];
}

export function isWords(piece: Piece): piece is Words {
  return piece.kind !== 'call' && piece.kind !== 'arguments';
}

export function wordsOf(kind: Words['kind'], sentence: string): Words[] {
  return splitWords(sentence).map((text) => ({ kind, text }));
}

export interface ScriptOptions {
  readonly finish?: string;
  /** The fields that limit the output, without those that the provider ignores. */
  readonly limits?: readonly string[];
}

/** The script for one choice: the reasoning and tool calls if the conversation requires calls, otherwise `answer`. */
export function scriptFor(call: Call, answer: readonly Piece[], options: ScriptOptions = {}): Script {
  const { finish = 'stop', limits = ['max_tokens', 'max_completion_tokens'] } = options;
  const turn = readTurn(call.body);
  const calls = turn.calls.flatMap((one, index) => callPieces(one, index, turn.taken * 10 + index));
  const thought = answer.filter((piece) => piece.kind === 'reasoning');
  const said = inFormat(call.body, lengthened(call.body, answer));
  const pieces = calls.length > 0 ? [...thought, ...thoughtOfStep(thought, turn), ...calls] : said;
  const limit = limits.map((name) => numberOf(call.body[name])).find((count) => count !== undefined);
  if (limit !== undefined && pieces.length > limit)
    return { pieces: pieces.slice(0, limit), finish: 'length' };
  return { pieces, finish: calls.length > 0 ? 'tool_calls' : finish };
}

/** Repeats the text until it has as many words as a user asks for. */
function lengthened({ messages }: JsonObject, answer: readonly Piece[]): readonly Piece[] {
  const asked = textOfAll(objectsOf(messages).filter(({ role }) => role === 'user'));
  const words = Number(/\bwords:(\d{1,5})\b/.exec(asked)?.[1] ?? 0);
  const text = answer.filter((piece): piece is Words => piece.kind === 'text');
  const longer = Array.from({ length: text.length === 0 ? 0 : words - text.length }, (_, at): Words => {
    const { text: word = '' } = text[at % text.length] ?? {};
    return { kind: 'text', text: ` ${word.trim()}` };
  });
  return [...answer, ...longer];
}

/** The output as JSON if the request has a JSON format: an example of the schema, or an object with the text. */
function inFormat({ response_format }: JsonObject, answer: readonly Piece[]): Piece[] {
  const { type, json_schema } = objectOf(response_format);
  const text = answer.map((piece) => (piece.kind === 'text' ? piece.text : '')).join('');
  if (text === '' || (type !== 'json_object' && type !== 'json_schema')) return [...answer];
  const json = type === 'json_object' ? { answer: text } : example(objectOf(objectOf(json_schema).schema));
  const rest = answer.filter((piece) => piece.kind !== 'text');
  return [...rest, ...wordsOf('text', JSON.stringify(json, null, 1).replaceAll(/\n\s*/g, ' '))];
}

/** @param hidden tokens of reasoning that is not shown, billed like shown reasoning */
export function costOf(call: Call, scripts: readonly Script[], hidden = 0): Cost {
  const pieces = scripts.flatMap((script) => script.pieces);
  const messages = objectsOf(call.body.messages);
  const texts = [...messages.map((message) => contentText(message.content)), ...promptTexts(call.body)];
  const system = messages.filter((message) => message.role === 'system');
  const prompt = countWords(texts);
  const completion = pieces.length + hidden;
  return {
    prompt,
    completion,
    total: prompt + completion,
    cached:
      call.cachedShare === undefined
        ? countWords(system.map((message) => contentText(message.content)))
        : Math.floor(prompt * call.cachedShare),
    reasoning: pieces.filter((piece) => piece.kind === 'reasoning').length + hidden,
  };
}

/** The joined text of all pieces of one kind. */
export function joined(script: Script, kind: Words['kind']): string {
  return script.pieces.map((piece) => (piece.kind === kind ? piece.text : '')).join('');
}

export interface WholeCall {
  readonly index: number;
  readonly number: number;
  readonly name: string;
  readonly arguments: string;
}

export function wholeCalls(script: Script): WholeCall[] {
  const calls: WholeCall[] = [];
  for (const piece of script.pieces) {
    const known = calls.at(-1);
    if (piece.kind === 'call') {
      const { index, number, name } = piece;
      calls.push({ index, number, name, arguments: '' });
    } else if (piece.kind === 'arguments' && known) {
      calls[calls.length - 1] = { ...known, arguments: known.arguments + piece.text };
    }
  }
  return calls;
}

/** Entries in OpenAI's form, one for the piece's token, with fixed probabilities. */
export function logprobEntries(text: string, top: number): JsonObject[] {
  const entry = (token: string, logprob: number) => ({ token, logprob, bytes: [...Buffer.from(token)] });
  const others = Array.from({ length: top }, (_, rank) =>
    entry(rank === 0 ? text : `${text}${rank}`, -0.25 - rank),
  );
  return [{ ...entry(text, -0.25), top_logprobs: others }];
}

const CALLS_PREFIX = 'calls:[{';

interface PlannedCall {
  readonly name: string;
  /** JSON. */
  readonly arguments: string;
}

interface Turn {
  /** The calls of this turn; empty if the model writes text. */
  readonly calls: readonly PlannedCall[];
  /** The number of earlier turns that called tools. */
  readonly taken: number;
  /** The total number of tool turns, if the messages set one. */
  readonly steps: number | undefined;
}

function readTurn(body: JsonObject): Turn {
  const messages = objectsOf(body.messages);
  const taken = messages.filter(callsTools).length;
  const tools = offeredTools(body);
  const reported = requestedCalls(
    textOfAll(messages.filter(({ role }) => role !== 'assistant' && role !== 'tool')),
  );
  if (reported.length > 0) {
    const calls = reported
      .slice(taken, taken + 1)
      .filter(({ name }) => tools.some((tool) => tool.name === name));
    return { calls, taken, steps: reported.length };
  }
  const correction = correctionOf(messages);
  if (correction !== null) {
    const fileTools = toolsOfCorrection(tools);
    const tool = fileTools[taken];
    return {
      calls: tool === undefined ? [] : [correctingCall(tool, correction)],
      taken,
      steps: fileTools.length,
    };
  }
  const steps = stepsOf(messages);
  if (steps === undefined) {
    const answered = messages.at(-1)?.role === 'tool';
    const called = answered ? [] : tools.slice(0, parallel(body) ? 2 : 1);
    return { calls: called.map(exampleCall), taken, steps };
  }
  const count = taken >= steps || tools.length === 0 ? 0 : taken === 0 && parallel(body) ? 2 : 1;
  const called = Array.from({ length: count }, (_, at) => tools[(taken + at) % tools.length] ?? {});
  return { calls: called.map(exampleCall), taken, steps };
}

function parallel(body: JsonObject): boolean {
  return body.parallel_tool_calls !== false;
}

function callsTools(message: JsonObject): boolean {
  return message.role === 'assistant' && objectsOf(message.tool_calls).length > 0;
}

function stepsOf(messages: readonly JsonObject[]): number | undefined {
  const first = messages.find((message) => message.role === 'user');
  const read = messages.filter(
    (message) => message === first || message.role === 'system' || message.role === 'developer',
  );
  const [, steps] = /\bsteps:(\d+)/.exec(textOfAll(read)) ?? [];
  return steps === undefined ? undefined : Number(steps);
}

function textOfAll(messages: readonly JsonObject[]): string {
  return messages.map((message) => contentText(message.content)).join('\n');
}

/** The JSON list after `calls:`; empty if it is not valid JSON. */
function requestedCalls(text: string): PlannedCall[] {
  const start = text.indexOf(CALLS_PREFIX);
  for (let end = start; start >= 0; ) {
    end = text.indexOf(']', end + 1);
    if (end < 0) break;
    const reported = decodeObject(
      `{"${CALLS_PREFIX.replace(':', '":')}${text.slice(start + CALLS_PREFIX.length, end + 1)}}`,
    );
    const calls = objectsOf(reported?.calls);
    if (calls.length > 0) {
      return calls.map((one) => ({ name: textOf(one.name), arguments: JSON.stringify(one.arguments) }));
    }
  }
  return [];
}

function offeredTools(body: JsonObject): JsonObject[] {
  if (body.tool_choice === 'none') return [];
  const named = textOf(objectOf(objectOf(body.tool_choice).function).name);
  const tools = objectsOf(body.tools).map((tool) => objectOf(tool.function));
  return named ? tools.filter((tool) => tool.name === named) : tools;
}

/** In a loop each thought names its step, so that tests detect a misplaced one. */
function thoughtOfStep(thought: readonly Piece[], { taken, steps }: Turn): Words[] {
  return thought.length > 0 && steps !== undefined ? wordsOf('reasoning', ` (step ${taken + 1})`) : [];
}

const FRAGMENT_CHARACTERS = 7;

function callPieces(call: PlannedCall, index: number, number: number): Piece[] {
  const fragments = call.arguments.match(new RegExp(`.{1,${FRAGMENT_CHARACTERS}}`, 'gsu')) ?? [];
  const head: Piece = { kind: 'call', index, number, name: call.name };
  return [head, ...fragments.map((text): Piece => ({ kind: 'arguments', index, text }))];
}

/** A file that the user wants to have another text: the request of the agents in docs/clients. */
interface Correction {
  readonly file: string;
  readonly text: string;
}

function correctionOf(messages: readonly JsonObject[]): Correction | null {
  const asked = textOfAll(messages.filter(({ role }) => role === 'user'));
  const [, file, text] = /\bCorrect ([\w./-]{1,64}): ([^\n]{1,200}\.)/.exec(asked) ?? [];
  return file === undefined || text === undefined ? null : { file, text: `${text}\n` };
}

const FILE_PARAMETER = /path|file/i;

const TEXT_PARAMETER = /text|content/i;

/** The tools with a file, up to the one that writes it. An agent may have others, which start a further agent or delete the file. */
function toolsOfCorrection(tools: readonly JsonObject[]): readonly JsonObject[] {
  const takes = ({ parameters }: JsonObject, parameter: RegExp) =>
    Object.keys(objectOf(objectOf(parameters).properties)).some((name) => parameter.test(name));
  const fileTools = tools.filter((tool) => takes(tool, FILE_PARAMETER));
  const writing = fileTools.findIndex((tool) => takes(tool, TEXT_PARAMETER));
  return writing < 0 ? fileTools : fileTools.slice(0, writing + 1);
}

/** Calls a tool that reads or writes a file. */
function correctingCall(tool: JsonObject, { file, text }: Correction): PlannedCall {
  const { properties } = objectOf(tool.parameters);
  const values = Object.entries(objectOf(properties)).map(([name, schema]) => {
    const isText = TEXT_PARAMETER.test(name);
    return [name, isText ? text : FILE_PARAMETER.test(name) ? file : example(objectOf(schema))];
  });
  return { name: textOf(tool.name), arguments: JSON.stringify(Object.fromEntries(values)) };
}

function exampleCall(tool: JsonObject): PlannedCall {
  const { properties = {} } = objectOf(tool.parameters);
  return { name: textOf(tool.name), arguments: JSON.stringify(example({ properties })) };
}

function example(schema: JsonObject): Json {
  if (Array.isArray(schema.enum)) return schema.enum[0] ?? null;
  if (isObject(schema.properties)) {
    const members = Object.entries(schema.properties).map(([key, member]) => [
      key,
      example(objectOf(member)),
    ]);
    return Object.fromEntries(members);
  }
  if (schema.type === 'integer' || schema.type === 'number') return 7;
  if (schema.type === 'boolean') return true;
  return schema.type === 'array' ? [] : 'Zürich';
}

export function contentText(content: Json | undefined): string {
  if (!Array.isArray(content)) return textOf(content);
  return content.map((part) => (isObject(part) ? textOf(part.text) : '')).join(' ');
}

function promptTexts(body: JsonObject): string[] {
  const prompts = Array.isArray(body.prompt) ? body.prompt : [body.prompt];
  return [...prompts, body.suffix].map(textOf);
}

function countWords(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + splitWords(text).length, 0);
}
