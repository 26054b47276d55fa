/**
 * A simulated model's answer, before any provider's wire form, and its cost. The token counts are predictable:
 * - every piece is one token: a word of reasoning, text or refusal, a tool call's head, a fragment of its arguments;
 * - completion tokens are the pieces of all choices, reasoning tokens those of kind `reasoning`;
 * - prompt tokens are the words of all messages, `prompt` and `suffix`; cached ones those of the system messages;
 * - `max_tokens` (or `max_completion_tokens`) cuts the pieces, and the finish is then `length`.
 */
import { isObject, type Json, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import type { Call } from './scene.ts';

export interface Words {
  readonly kind: 'reasoning' | 'text' | 'refusal';
  readonly text: string;
}
export type CallPiece =
  | { readonly kind: 'call'; readonly index: number; readonly name: string }
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

/** Words keep the white space before them, so that the pieces joined are the sentence. */
function splitWords(text: string): string[] {
  return text.match(/\s*\S+/g) ?? [];
}

export function isWords(piece: Piece): piece is Words {
  return piece.kind !== 'call' && piece.kind !== 'arguments';
}

export function wordsOf(kind: Words['kind'], sentence: string): Words[] {
  return splitWords(sentence).map((text) => ({ kind, text }));
}

/** The script for one choice: a tool call where tools were sent and not yet answered, else `answer`. */
export function scriptFor(call: Call, answer: readonly Piece[], finish = 'stop'): Script {
  const tools = wantedTools(call.body);
  const pieces = tools.length > 0 ? tools.flatMap(callPieces) : [...answer];
  const limit = numberOf(call.body.max_tokens) ?? numberOf(call.body.max_completion_tokens) ?? Infinity;
  if (pieces.length > limit) return { pieces: pieces.slice(0, limit), finish: 'length' };
  return { pieces, finish: tools.length > 0 ? 'tool_calls' : finish };
}

/** Reasoning that the model does not show (`hidden`) is billed like shown reasoning. */
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
    cached: countWords(system.map((message) => contentText(message.content))),
    reasoning: pieces.filter((piece) => piece.kind === 'reasoning').length + hidden,
  };
}

/** The text of all pieces of one kind, as a finished message holds it. */
export function joined(script: Script, kind: Words['kind']): string {
  return script.pieces.map((piece) => (piece.kind === kind ? piece.text : '')).join('');
}

export interface WholeCall {
  readonly index: number;
  readonly name: string;
  readonly arguments: string;
}

export function wholeCalls(script: Script): WholeCall[] {
  const calls: WholeCall[] = [];
  for (const piece of script.pieces) {
    const known = calls.at(-1);
    if (piece.kind === 'call') calls.push({ index: piece.index, name: piece.name, arguments: '' });
    else if (piece.kind === 'arguments' && known) {
      calls[calls.length - 1] = { ...known, arguments: known.arguments + piece.text };
    }
  }
  return calls;
}

/** Entries in OpenAI's form, one for the piece's one token; the probabilities are made up, but always the same. */
export function logprobEntries(text: string, top: number): JsonObject[] {
  const entry = (token: string, logprob: number) => ({ token, logprob, bytes: [...Buffer.from(token)] });
  const others = Array.from({ length: top }, (_, rank) =>
    entry(rank === 0 ? text : `${text}${rank}`, -0.25 - rank),
  );
  return [{ ...entry(text, -0.25), top_logprobs: others }];
}

function wantedTools(body: JsonObject): JsonObject[] {
  const answered = objectsOf(body.messages).at(-1)?.role === 'tool';
  if (answered || body.tool_choice === 'none') return [];
  const named = textOf(objectOf(objectOf(body.tool_choice).function).name);
  const tools = objectsOf(body.tools).map((tool) => objectOf(tool.function));
  const chosen = named ? tools.filter((tool) => tool.name === named) : tools;
  return body.parallel_tool_calls === false ? chosen.slice(0, 1) : chosen.slice(0, 2);
}

const FRAGMENT_CHARACTERS = 7;

function callPieces(tool: JsonObject, index: number): Piece[] {
  const properties = Object.entries(objectOf(objectOf(tool.parameters).properties));
  const values = Object.fromEntries(properties.map(([key, schema]) => [key, example(objectOf(schema))]));
  const fragments = JSON.stringify(values).match(new RegExp(`.{1,${FRAGMENT_CHARACTERS}}`, 'gsu')) ?? [];
  const head: Piece = { kind: 'call', index, name: textOf(tool.name) };
  return [head, ...fragments.map((text): Piece => ({ kind: 'arguments', index, text }))];
}

function example(schema: JsonObject): Json {
  if (Array.isArray(schema.enum)) return schema.enum[0] ?? null;
  if (schema.type === 'integer' || schema.type === 'number') return 7;
  if (schema.type === 'boolean') return true;
  return schema.type === 'array' ? [] : 'Zürich';
}

function contentText(content: Json | undefined): string {
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
