/** Inspects a provider's stream: runs it through Weir, checks the output against the contract, and finds keys that no recording has. */
import { isObject, type JsonObject } from '../../src/shared/json.ts';
import { convertStream } from '../../test/contract/convert.ts';
import { expectationOf } from '../../test/contract/expectation.ts';
import { readRecordings } from '../../test/contract/recordings.ts';
import { check } from '../conformance/contract/check.ts';
import { eventsOf } from './events.ts';
import type { Planned } from './plan.ts';

export interface StreamFindings {
  /** Rules of the contract that Weir's output breaks. */
  readonly breaks: readonly string[];
  /** Paths of keys that neither a recorded stream of the provider nor OpenAI has. */
  readonly newKeys: readonly string[];
  /** The error that the stream ended with, or null. */
  readonly failure: string | null;
}

/** The keys of OpenAI's own chunks. https://platform.openai.com/docs/api-reference/chat-streaming (2026-11-21) */
const OPENAI_KEYS: readonly string[] = [
  ...['id', 'object', 'created', 'model', 'service_tier', 'system_fingerprint', 'obfuscation', 'choices'],
  ...keysBelow('choices[]', ['index', 'delta', 'text', 'logprobs', 'finish_reason']),
  ...keysBelow('choices[].delta', ['role', 'content', 'refusal', 'tool_calls', 'function_call']),
  ...keysBelow('choices[].delta.tool_calls[]', ['index', 'id', 'type', 'function']),
  ...keysBelow('choices[].delta.tool_calls[].function', ['name', 'arguments']),
  ...keysBelow('choices[].delta.function_call', ['name', 'arguments']),
  ...keysBelow('choices[].logprobs', ['content', 'refusal']),
  ...keysBelow('choices[].logprobs.content[]', ['token', 'logprob', 'bytes', 'top_logprobs']),
  ...keysBelow('choices[].logprobs.content[].top_logprobs[]', ['token', 'logprob', 'bytes']),
  ...['usage', 'usage.prompt_tokens', 'usage.completion_tokens', 'usage.total_tokens'],
  ...['usage.prompt_tokens_details', 'usage.completion_tokens_details'],
  ...keysBelow('usage.prompt_tokens_details', ['cached_tokens', 'audio_tokens']),
  ...keysBelow('usage.completion_tokens_details', [
    'reasoning_tokens',
    'audio_tokens',
    'accepted_prediction_tokens',
    'rejected_prediction_tokens',
  ]),
];

function keysBelow(path: string, keys: readonly string[]): string[] {
  return keys.map((key) => `${path}.${key}`);
}

export class StreamInspector {
  /** How many recorded streams of the provider there are to compare with. */
  readonly recordings: number;
  readonly #provider: string;
  readonly #known: Set<string>;

  constructor(provider: string) {
    const recorded = readRecordings().filter(
      ({ name, protocol }) => protocol === 'openai' && name.startsWith(`${provider}--`),
    );
    this.#provider = provider;
    this.recordings = recorded.length;
    this.#known = new Set([...OPENAI_KEYS, ...recorded.flatMap(({ text }) => [...keysOf(text)])]);
  }

  inspect(text: string, { route, raw }: Planned): StreamFindings {
    const options = isObject(raw.stream_options) ? raw.stream_options : {};
    const usageChunk = options.include_usage === true;
    const choices = typeof raw.n === 'number' ? raw.n : 1;
    const conversion = { provider: this.#provider, route, model: String(raw.model), usageChunk, choices };
    const newKeys = this.#unknownKeys(text);
    try {
      const converted = convertStream([new TextEncoder().encode(text)], conversion);
      const breaks = check(new TextEncoder().encode(converted.text), expectationOf(conversion));
      return { breaks, newKeys, failure: converted.error?.message ?? null };
    } catch (error) {
      // One stream that Weir can't read must not end a probe that costs money.
      return { breaks: [`Weir throws: ${String(error)}`], newKeys, failure: null };
    }
  }

  /** Each key is reported once, for the first stream that has it, without the keys below it. */
  #unknownKeys(text: string): string[] {
    const found = [...keysOf(text)].filter((path) => !this.#known.has(path));
    for (const path of found) this.#known.add(path);
    return found.filter((path) => !found.some((other) => path !== other && isBelow(path, other)));
  }
}

function isBelow(path: string, other: string): boolean {
  return path.startsWith(`${other}.`) || path.startsWith(`${other}[]`);
}

function keysOf(text: string): Set<string> {
  const keys = new Set<string>();
  for (const event of eventsOf(text)) collect(event, '', keys);
  return keys;
}

function collect(value: JsonObject, path: string, keys: Set<string>): void {
  for (const [key, member] of Object.entries(value)) {
    const inner = path === '' ? key : `${path}.${key}`;
    keys.add(inner);
    if (isObject(member)) collect(member, inner, keys);
    else if (Array.isArray(member)) {
      for (const item of member) if (isObject(item)) collect(item, `${inner}[]`, keys);
    }
  }
}
