/** Reads a Responses request's items into chat's messages: items of one step become one assistant message, each result stands behind its call (I2). */

import { ReportedFields } from '../../canonical/reported-fields.ts';
import { EmbeddedJson, isObject, type JsonObject, readArray, readText } from '../../shared/json.ts';
import { decodeReasoningStates } from '../shared/reasoning-state.ts';
import { asContent, readContent, textOf } from './client-request-content.ts';
import { flatName } from './client-request-tools.ts';
import { isOwnReasoningId } from './items.ts';

export type ReadInput =
  | {
      readonly kind: 'messages';
      readonly messages: readonly JsonObject[];
      /** Tools that came with the items: codex sends all of them so (0.169, 2026-11-22). */
      readonly tools: readonly unknown[];
      /** Kinds of items and parts that were left out. */
      readonly dropped: readonly string[];
    }
  | {
      readonly kind: 'error';
      readonly code: 'invalid_request' | 'unsupported_parameter';
      readonly message: string;
    };

/** What stands for the text of a result that has none. */
const IMAGE_NOTE = '(The result is in the next message.)';

const BETWEEN_TEXTS = '\n\n';

const ROLES = ['user', 'system', 'developer'];

const ITEM_REFERENCE =
  'This gateway keeps no items, so an item_reference leads nowhere: send the items themselves (SDKs do with store: false)';

/** @param input a text, or a list of items */
export function readInput(input: unknown): ReadInput {
  if (typeof input === 'string') {
    return { kind: 'messages', messages: [{ role: 'user', content: input }], tools: [], dropped: [] };
  }
  if (!Array.isArray(input)) {
    return { kind: 'error', code: 'invalid_request', message: 'input must be a text or a list of items' };
  }
  const reader = new InputReader();
  for (const item of input) {
    const problem = isObject(item) ? reader.read(item) : 'Every item of input must be an object';
    if (problem === null) continue;
    const code = problem === ITEM_REFERENCE ? 'unsupported_parameter' : 'invalid_request';
    return { kind: 'error', code, message: problem };
  }
  return { kind: 'messages', messages: reader.messages(), tools: reader.tools, dropped: reader.dropped.list };
}

/** What one step of the model brought: its texts, its reasoning and its calls. */
interface Step {
  readonly kind: 'step';
  readonly texts: string[];
  readonly reasoning: string[];
  readonly details: JsonObject[];
  readonly calls: JsonObject[];
  /** What the upstream wants back with a call, by the call's id. */
  readonly extraContents: Map<string, JsonObject>;
}

/** Of the calls of one id. */
interface Results {
  /** The messages of each. */
  readonly all: (readonly JsonObject[])[];
  /** How many stand behind their call. */
  taken: number;
}

type Entry = Step | { readonly kind: 'message'; readonly message: JsonObject };

class InputReader {
  readonly dropped = new ReportedFields();
  readonly tools: unknown[] = [];
  readonly #embedded = new EmbeddedJson();
  readonly #entries: Entry[] = [];
  /** By their call's id, which some models give to a call of every step: those of an earlier step come first. */
  readonly #results = new Map<string, Results>();
  /** The step that further items belong to. */
  #step: Step | null = null;

  /** @returns why the item can't be read, or null */
  read(item: JsonObject): string | null {
    switch (item.type ?? (item.role === undefined ? 'item_reference' : 'message')) {
      case 'message':
        return this.#message(item);
      case 'reasoning':
        return this.#reasoning(item);
      case 'function_call':
        return isTextual(item.arguments)
          ? this.#call(item, readText(item.arguments) ?? '{}')
          : 'The arguments of a function_call must be JSON text';
      case 'custom_tool_call':
        return isTextual(item.input)
          ? this.#call(item, JSON.stringify({ input: readText(item.input) ?? '' }))
          : 'The input of a custom_tool_call must be a text';
      case 'function_call_output':
      case 'custom_tool_call_output':
        return this.#result(item);
      case 'additional_tools':
        for (const tool of readArray(item.tools)) this.tools.push(tool);
        return null;
      case 'item_reference':
        return ITEM_REFERENCE;
      default:
        this.dropped.add(`input.${itemType(item)}`);
        return null;
    }
  }

  messages(): readonly JsonObject[] {
    const messages = this.#entries.flatMap((entry) => {
      if (entry.kind === 'message') return [entry.message];
      const results = entry.calls.flatMap(({ id }) => this.#takeResult(String(id)));
      const isTool = ({ role }: JsonObject) => role === 'tool';
      // Right behind calls no provider takes anything but their results: what else those hold comes after the last.
      return [
        ...stepMessage(entry),
        ...results.filter(isTool),
        ...results.filter((message) => !isTool(message)),
      ];
    });
    // A result without its call is for the provider to refuse.
    const left = [...this.#results.values()].flatMap(({ all, taken }) => all.slice(taken));
    return [...messages, ...left.flat()];
  }

  #takeResult(id: string): readonly JsonObject[] {
    const results = this.#results.get(id);
    return results?.all[results.taken++] ?? [];
  }

  #message({ role: asked, content }: JsonObject): string | null {
    const read = readContent(content, this.dropped);
    if (read.kind === 'error') return read.message;
    if (asked === 'assistant') {
      const text = textOf(read.parts);
      if (text !== '') this.#openStep().texts.push(text);
      return null;
    }
    const role = ROLES.find((known) => known === asked);
    if (role === undefined) return `A message's role must be one of: assistant, ${ROLES.join(', ')}`;
    this.#step = null;
    this.#entries.push({ kind: 'message', message: { role, content: asContent(read.parts) } });
    return null;
  }

  #reasoning({ id, summary, content, encrypted_content }: JsonObject): null {
    const step = this.#openStep();
    // Its provider keeps the reasoning itself: what is here is no more than a reference to it.
    const isKept = readText(encrypted_content) === undefined && readReasoning(content) === '';
    if (isKept && readText(id) !== undefined && !isOwnReasoningId(id)) this.dropped.add('input.reasoning');
    // Where the whole reasoning is told, its summary repeats it.
    const told = readText(readReasoning(content)) ?? readText(readReasoning(summary));
    if (told !== undefined) step.reasoning.push(told);
    for (const token of decodeReasoningStates(encrypted_content, this.#embedded)) {
      if ('detail' in token) step.details.push(token.detail);
      else step.extraContents.set(token.call, token.extra_content);
    }
    return null;
  }

  #call(item: JsonObject, args: string): string | null {
    const id = readText(item.call_id);
    const name = readText(item.name);
    if (id === undefined || name === undefined) return `A ${itemType(item)} needs its call_id and its name`;
    const called = { name: flatName(name, readText(item.namespace)), arguments: args };
    this.#openStep().calls.push({ id, type: 'function', function: called });
    return null;
  }

  #result(item: JsonObject): string | null {
    const id = readText(item.call_id);
    if (id === undefined) return `A ${itemType(item)} needs its call_id`;
    const read = readContent(item.output, this.dropped);
    if (read.kind === 'error') return read.message;
    const text = textOf(read.parts);
    const others = read.parts.filter(({ type }) => type !== 'text');
    const content = text === '' && others.length > 0 ? IMAGE_NOTE : text;
    const shown = others.length === 0 ? [] : [{ role: 'user', content: others }];
    const results = this.#results.get(id) ?? { all: [], taken: 0 };
    this.#results.set(id, results);
    results.all.push([{ role: 'tool', tool_call_id: id, content }, ...shown]);
    this.#step = null;
    return null;
  }

  #openStep(): Step {
    if (this.#step !== null) return this.#step;
    this.#step = { kind: 'step', texts: [], reasoning: [], details: [], calls: [], extraContents: new Map() };
    this.#entries.push(this.#step);
    return this.#step;
  }
}

/** The step's one message; none where it brought nothing but reasoning: no provider takes that alone. */
function stepMessage({ texts, reasoning, details, calls, extraContents }: Step): readonly JsonObject[] {
  if (texts.length === 0 && calls.length === 0) return [];
  const signed = calls.map((call) => {
    const extra_content = extraContents.get(String(call.id));
    return extra_content === undefined ? call : { ...call, extra_content };
  });
  return [
    {
      role: 'assistant',
      content: texts.length === 0 ? null : texts.join(BETWEEN_TEXTS),
      ...(reasoning.length === 0 ? {} : { reasoning_content: reasoning.join(BETWEEN_TEXTS) }),
      ...(details.length === 0 ? {} : { reasoning_details: details }),
      ...(calls.length === 0 ? {} : { tool_calls: signed }),
    },
  ];
}

function readReasoning(parts: unknown): string {
  const texts = readArray(parts).map((part) => (isObject(part) ? readText(part.text) : undefined));
  return texts.filter((text) => text !== undefined).join(BETWEEN_TEXTS);
}

/** A text, or none. */
function isTextual(value: unknown): boolean {
  return typeof value === 'string' || value === undefined || value === null;
}

function itemType(item: JsonObject): string {
  const type = readText(item.type) ?? 'untyped';
  return /^[\w.-]{1,64}$/.test(type) ? type : 'unknown';
}
