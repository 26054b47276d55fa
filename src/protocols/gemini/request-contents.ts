/** Writes a conversation as Gemini has it: turns of two roles, results by their call's name, signatures where they came (A2, A7). */

import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { STAND_IN } from '../../request-translation/messages.ts';
import { argumentsObject } from '../../request-translation/tools.ts';
import { EmbeddedJson, isObject, type JsonObject, objectOf, readArray, readText } from '../../shared/json.ts';
import type { GeminiFamily } from './family.ts';
import { writeParts } from './request-parts.ts';
import { StepResults } from './request-results.ts';
import { readSignatures, type TextSignature } from './request-signatures.ts';

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
  report: TranslationReport,
): Conversation {
  const known = messages.filter(isObject);
  const lead = known.findIndex(({ role }) => !isSystem(role));
  const leading = lead < 0 ? known : known.slice(0, lead);
  const system = leading.map(({ content }) => writeParts(content, report)).filter(({ length }) => length > 0);
  const writer = new ContentWriter(family, maker, report);
  for (const message of known) reportLost(message, report);
  for (const message of known.slice(leading.length)) writer.add(message);
  const turns = writer.take();
  // 400 "contents is not specified", where OpenAI answers a system message (ikechan8370/chatgpt-plugin#733, 2024-12-22).
  const runner = turns.length === 0 ? system.pop() : undefined;
  return {
    contents: runner === undefined ? turns : [{ role: 'user', parts: runner }],
    systemInstruction: system.length === 0 ? undefined : { parts: system.flat() },
  };
}

function isSystem(role: unknown): boolean {
  return role === 'system' || role === 'developer';
}

function reportLost(message: JsonObject, report: TranslationReport): void {
  for (const key of Object.keys(message)) {
    if (READ_KEYS.has(key) || message[key] === null || message[key] === undefined) continue;
    // A tool's message names the tool, and so does its call.
    if (key !== 'name' || message.role !== 'tool') report.drop(`messages.${key}`);
  }
}

class ContentWriter {
  readonly #family: GeminiFamily;
  readonly #maker: string;
  readonly #report: TranslationReport;
  readonly #turns: Turn[] = [];
  readonly #embedded = new EmbeddedJson();
  readonly #results = new StepResults(this.#embedded);
  /** What the user says since the last turn of the model's: it stands behind the results, whatever the client sent between them. */
  #said: JsonObject[] = [];

  constructor(family: GeminiFamily, maker: string, report: TranslationReport) {
    this.#family = family;
    this.#maker = maker;
    this.#report = report;
  }

  add(message: JsonObject): void {
    if (message.role === 'tool') return this.#addResult(message);
    if (message.role === 'assistant') {
      this.#endUserTurn();
      return this.#push('model', this.#assistant(message));
    }
    // A system message in the middle can be nothing else here.
    for (const part of writeParts(message.content, this.#report)) this.#said.push(part);
  }

  take(): readonly JsonObject[] {
    this.#endUserTurn();
    const [first] = this.#turns;
    // 400 "Please ensure that function call turn comes immediately after a user turn": of a history whose beginning a client cut off
    // (google-gemini/gemini-cli#11814, 2025-10-23; diegosouzapw/OmniRoute#13573, 2026-09-13).
    const isCut =
      first?.role === 'model' && first.parts.some(({ functionCall }) => functionCall !== undefined);
    const before = isCut ? [{ role: 'user', parts: [{ text: ' ' }] }] : [];
    return [...before, ...this.#turns.map(({ role, parts }) => ({ role, parts }))];
  }

  #endUserTurn(): void {
    const said = this.#said;
    this.#said = [];
    this.#push('user', [...this.#results.take(), ...said]);
  }

  /** Turns alternate: what follows in the same role goes into one. */
  #push(role: Role, parts: readonly JsonObject[]): void {
    if (parts.length === 0) return;
    const last = this.#turns.at(-1);
    if (last?.role !== role) this.#turns.push({ role, parts: [...parts] });
    // A call with as many arguments would exceed the engine's stack.
    else for (const part of parts) last.parts.push(part);
  }

  #assistant(message: JsonObject): JsonObject[] {
    const { calls, texts, thoughts } = readSignatures(message, this.#maker);
    const said = writeParts(message.content, this.#report);
    const refused = said.length === 0 ? writeParts(message.refusal, this.#report) : [];
    const toolCalls = readArray(message.tool_calls).filter(isObject);
    if (this.#turns.at(-1)?.role !== 'model') this.#results.begin();
    const written = toolCalls.map((call) => this.#call(call, calls.get(readText(call.id) ?? '')));
    const [first, ...others] = written;
    // The first call of a step needs one: https://ai.google.dev/gemini-api/docs/thought-signatures (read 2026-11-21).
    const isLost =
      this.#family.needsSignatures && written.every(({ thoughtSignature }) => thoughtSignature === undefined);
    const signedCalls =
      first !== undefined && isLost ? [{ ...first, thoughtSignature: STAND_IN }, ...others] : written;
    return [
      ...thoughts.map((thoughtSignature) => ({ text: '', thought: true, thoughtSignature })),
      ...withTextSignatures([...said, ...refused], texts),
      ...signedCalls,
    ];
  }

  #call(call: JsonObject, thoughtSignature: string | undefined): JsonObject {
    const called = objectOf(call.function, call.custom);
    const id = readText(call.id);
    const name = readText(called.name) ?? '';
    this.#results.call(id ?? '', name);
    return {
      functionCall: {
        ...(id === undefined ? {} : { id }),
        name,
        args: argumentsObject(called.arguments ?? called.input, this.#embedded),
      },
      ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
    };
  }

  #addResult(message: JsonObject): void {
    const id = readText(message.tool_call_id) ?? '';
    const parts = writeParts(message.content, this.#report);
    this.#results.add(id, parts, readText(message.name) ?? id, this.#family.mediaInResults);
  }
}

/** Each signature on the text that it came with: on a part of its own, so that no signed one is joined with another. */
function withTextSignatures(said: readonly JsonObject[], signatures: readonly TextSignature[]): JsonObject[] {
  const parts: JsonObject[] = [];
  const unsigned: JsonObject[] = [];
  /** Where the next text stands, and how much of it is signed. */
  let at = 0;
  let signedChars = 0;
  for (const { signature: thoughtSignature, chars } of signatures) {
    while (at < said.length && readText(said[at]?.text) === undefined) parts.push(said[at++] ?? {});
    const text = readText(said[at]?.text) ?? '';
    if (chars === 0 || text.length - signedChars < chars) {
      unsigned.push({ text: '', thoughtSignature });
      continue;
    }
    parts.push({ text: text.slice(signedChars, signedChars + chars), thoughtSignature });
    signedChars += chars;
    if (signedChars < text.length) continue;
    at++;
    signedChars = 0;
  }
  if (signedChars > 0) parts.push({ text: readText(said[at++]?.text)?.slice(signedChars) });
  return [...parts, ...said.slice(at), ...unsigned];
}
