/** Writes a conversation as Gemini has it: turns of two roles, results by their call's name, signatures where they came (A2, A7). */
import { parseJsonExactly } from '../../canonical/exact-json.ts';
import { isObject, type JsonObject, objectOf, readArray, readText } from '../../canonical/json.ts';
import type { Report } from '../report.ts';
import { STAND_IN } from '../signatures.ts';
import type { GeminiFamily } from './families.ts';
import { writeParts } from './parts.ts';
import { readSignatures, type TextSignature } from './signatures.ts';

type Role = 'user' | 'model';

interface Turn {
  readonly role: Role;
  readonly parts: JsonObject[];
}

export interface Conversation {
  readonly contents: readonly JsonObject[];
  /** Undefined where no system message leads. */
  readonly systemInstruction: JsonObject | undefined;
}

/** Keys of a message that are read, or say nothing to a provider. */
const READ_KEYS: ReadonlySet<string> = new Set([
  ...['role', 'content', 'tool_calls', 'tool_call_id', 'refusal', 'reasoning', 'reasoning_content'],
  ...[
    'reasoning_details',
    'thinking_blocks',
    'extra_content',
    'annotations',
    'audio',
    'parsed',
    'function_call',
  ],
  ...['provider_specific_fields', 'index'],
]);

export function writeContents(
  messages: readonly unknown[],
  family: GeminiFamily,
  maker: string,
  report: Report,
): Conversation {
  const known = messages.filter(isObject);
  const lead = known.findIndex(({ role }) => !isSystem(role));
  const leading = lead < 0 ? known : known.slice(0, lead);
  const system = leading.flatMap(({ content }) => writeParts(content, report));
  const writer = new ContentWriter(family, maker, report);
  for (const message of known) reportLost(message, report);
  for (const message of known.slice(leading.length)) writer.add(message);
  return {
    contents: writer.take(),
    systemInstruction: system.length === 0 ? undefined : { parts: system },
  };
}

function isSystem(role: unknown): boolean {
  return role === 'system' || role === 'developer';
}

function reportLost(message: JsonObject, report: Report): void {
  for (const [key, value] of Object.entries(message)) {
    if (READ_KEYS.has(key) || value === null || value === undefined) continue;
    // A tool's message names the tool, and so does its call.
    if (key !== 'name' || message.role !== 'tool') report.drop(`messages.${key}`);
  }
}

class ContentWriter {
  readonly #family: GeminiFamily;
  readonly #maker: string;
  readonly #report: Report;
  readonly #turns: Turn[] = [];
  /** The name that each call of the history has. */
  readonly #names = new Map<string, string>();
  /** The ids of the last step's calls, in whose order its results are wanted. */
  #order: readonly string[] = [];
  /** The results of that step, by the call's id. */
  #results: { readonly id: string; readonly parts: readonly JsonObject[] }[] = [];

  constructor(family: GeminiFamily, maker: string, report: Report) {
    this.#family = family;
    this.#maker = maker;
    this.#report = report;
  }

  add(message: JsonObject): void {
    if (message.role === 'tool') return this.#addResult(message);
    this.#flushResults();
    if (message.role === 'assistant') this.#push('model', this.#assistant(message));
    // A system message in the middle can be nothing else here.
    else this.#push('user', writeParts(message.content, this.#report));
  }

  take(): readonly JsonObject[] {
    this.#flushResults();
    return this.#turns.map(({ role, parts }) => ({ role, parts }));
  }

  /** Turns alternate: what follows in the same role goes into one. */
  #push(role: Role, parts: readonly JsonObject[]): void {
    if (parts.length === 0) return;
    const last = this.#turns.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else this.#turns.push({ role, parts: [...parts] });
  }

  #assistant(message: JsonObject): JsonObject[] {
    const { calls, texts, thoughts } = readSignatures(message, this.#maker);
    const said = writeParts(message.content, this.#report);
    if (said.length === 0) said.push(...writeParts(message.refusal, this.#report));
    const toolCalls = readArray(message.tool_calls).filter(isObject);
    const written = toolCalls.map((call) => this.#call(call, calls.get(readText(call.id) ?? '')));
    if (written.length > 0) this.#order = toolCalls.map(({ id }) => readText(id) ?? '');
    const [first, ...others] = written;
    // The first call of a step needs one: https://ai.google.dev/gemini-api/docs/thought-signatures (read 2026-11-21).
    const isLost =
      this.#family.needsSignatures && written.every(({ thoughtSignature }) => thoughtSignature === undefined);
    const signedCalls =
      first !== undefined && isLost ? [{ ...first, thoughtSignature: STAND_IN }, ...others] : written;
    return [
      ...thoughts.map((thoughtSignature) => ({ text: '', thought: true, thoughtSignature })),
      ...withTextSignatures(said, texts),
      ...signedCalls,
    ];
  }

  #call(call: JsonObject, thoughtSignature: string | undefined): JsonObject {
    const { name, arguments: text } = objectOf(call.function);
    const id = readText(call.id);
    if (id !== undefined) this.#names.set(id, readText(name) ?? '');
    return {
      functionCall: {
        ...(id === undefined ? {} : { id }),
        name: readText(name) ?? '',
        args: readArguments(text),
      },
      ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
    };
  }

  #addResult(message: JsonObject): void {
    const id = readText(message.tool_call_id) ?? '';
    const parts = writeParts(message.content, this.#report);
    const media = parts.filter(({ text }) => text === undefined);
    const text = parts.flatMap((part) => (typeof part.text === 'string' ? [part.text] : [])).join('\n');
    const within = this.#family.mediaInResults && media.length > 0 ? { parts: media } : {};
    const functionResponse = {
      ...(id === '' ? {} : { id }),
      name: this.#names.get(id) ?? readText(message.name) ?? id,
      response: readResult(text),
      ...within,
    };
    this.#results.push({ id, parts: [{ functionResponse }, ...(this.#family.mediaInResults ? [] : media)] });
  }

  /** As many as the calls, in their order, in one turn: Google counts them (google-gemini/gemini-cli#16543, 2026-01-13). */
  #flushResults(): void {
    const place = ({ id }: { readonly id: string }) => {
      const at = this.#order.indexOf(id);
      return at < 0 ? this.#order.length : at;
    };
    const results = this.#results.toSorted((a, b) => place(a) - place(b)).map(({ parts }) => parts);
    this.#results = [];
    // What stands beside the results comes after all of them.
    this.#push('user', [
      ...results.flatMap((parts) => parts.slice(0, 1)),
      ...results.flatMap((parts) => parts.slice(1)),
    ]);
  }
}

/** Each signature on the text that it came with: on a part of its own, so that no signed one is joined with another. */
function withTextSignatures(said: readonly JsonObject[], signatures: readonly TextSignature[]): JsonObject[] {
  const parts = [...said];
  for (const { signature: thoughtSignature, chars } of signatures) {
    const at = parts.findIndex(
      ({ text, thoughtSignature }) => thoughtSignature === undefined && readText(text) !== undefined,
    );
    const text = readText(parts[at]?.text) ?? '';
    if (chars === 0 || text.length < chars) {
      parts.push({ text: '', thoughtSignature });
      continue;
    }
    const rest = text.slice(chars);
    parts.splice(
      at,
      1,
      { text: text.slice(0, chars), thoughtSignature },
      ...(rest === '' ? [] : [{ text: rest }]),
    );
  }
  return parts;
}

/** Arguments are an object here: `""` is none, and a text that is no object (cut by a limit) is kept as one of them. */
function readArguments(text: unknown): JsonObject {
  if (isObject(text)) return text;
  const args = typeof text === 'string' ? parseJsonExactly(text) : undefined;
  if (isObject(args)) return args;
  return readText(text) === undefined ? {} : { arguments: text };
}

/** A result is an object, too: any other text is its output. */
function readResult(text: string): JsonObject {
  const result = parseJsonExactly(text);
  return isObject(result) ? result : { output: text };
}
