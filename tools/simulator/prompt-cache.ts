/** The prompt caches of the simulated providers: what a prompt has in common with an earlier one of the same provider and model. */
import type { JsonObject } from './json.ts';

/** Prompts that are kept of one model. */
const MAX_PROMPTS = 200;

/** Cache marks move with each step, and change nothing. */
const MARK = /,"cache_control":\{[^{}]*\}/g;

export class PromptCache {
  readonly #prompts = new Map<string, (readonly string[])[]>();

  /**
   * Keeps a prompt.
   * @param scope the provider and the model
   * @returns the part of it that an earlier one had, too: from 0 to 1
   */
  read(scope: string, body: JsonObject): number {
    const parts = promptParts(body);
    const earlier = this.#prompts.get(scope) ?? [];
    const common = Math.max(0, ...earlier.map((other) => charsOf(parts.slice(0, commonParts(parts, other)))));
    this.#prompts.set(scope, [...earlier, parts].slice(-MAX_PROMPTS));
    return common / charsOf(parts);
  }
}

/** A prompt in the order in which providers cache it: tools, settings and system text, messages. */
export function promptParts(body: JsonObject): readonly string[] {
  const { tools, thinking, tool_choice, system, instructions, systemInstruction } = body;
  const list = [body.messages, body.input, body.contents].find(Array.isArray) ?? [];
  const head = [{ tools }, { thinking, tool_choice, system, instructions, systemInstruction }];
  return [...head, ...list].map((part) => (JSON.stringify(part) ?? '').replace(MARK, ''));
}

/** How many parts two prompts begin with in common. */
export function commonParts(a: readonly string[], b: readonly string[]): number {
  const at = a.findIndex((part, i) => part !== b[i]);
  return at < 0 ? a.length : at;
}

function charsOf(parts: readonly string[]): number {
  return parts.join('').length;
}
