/** Joins an upstream's tool call fragments, which may lack index, id or name. */

import type { ToolCall } from '../../tools/conformance/contract/content.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  parseJson,
  textOf,
} from '../../tools/conformance/contract/json.ts';

export interface CallSlot {
  /** The index under which the upstream sends this call's fragments. */
  index: number;
  call: ToolCall;
}

export function toolCallOf(slot: CallSlot): ToolCall {
  return slot.call;
}

/** Whether a fragment repeats a whole call, with its id and name. */
export function isRepeatedCall(slots: CallSlot[], fragment: JsonObject): boolean {
  const part = objectOf(fragment.function);
  const id = realId(fragment.id);
  const call = slots.findLast((slot) => slot.call.id === id && id !== '')?.call;
  const isEqual = call?.name === textOf(part.name) && call.arguments === argumentsOf(part.arguments);
  return isEqual && (call.arguments === '' || isObject(parseJson(call.arguments)));
}

export function addFragment(slots: CallSlot[], fragment: JsonObject): void {
  const part = objectOf(fragment.function);
  const id = realId(fragment.id);
  const name = textOf(part.name);
  const slot = known(slots, fragment.index, id, name) ?? begin(slots, fragment.index, id);
  slot.call.name ||= name;
  const args = argumentsOf(part.arguments);
  // The first one is a placeholder for the second.
  if (slot.call.arguments !== '{}' || args !== '{}') slot.call.arguments += args;
  slot.call.extra ??= isObject(fragment.extra_content) ? fragment.extra_content : null;
}

/** Some upstreams write "null" where they have no id. */
function realId(id: Json | undefined): string {
  const text = textOf(id);
  return text === 'null' ? '' : text;
}

function known(slots: CallSlot[], index: Json | undefined, id: string, name: string): CallSlot | undefined {
  const withId = slots.find((slot) => slot.call.id === id && id !== '');
  if (typeof index === 'number') {
    // Some upstreams send the same index for each call: later fragments belong to the newest call.
    const newest = slots.findLast((slot) => slot.index === index);
    const other = name !== '' && id !== '' && newest !== undefined && !['', id].includes(newest.call.id);
    return other ? withId : newest;
  }
  if (id !== '') return withId;
  const last = slots.at(-1);
  return name !== '' && last !== undefined && last.call.name !== '' ? undefined : last;
}

function begin(slots: CallSlot[], index: Json | undefined, id: string): CallSlot {
  const next = Math.max(-1, ...slots.map((slot) => slot.index)) + 1;
  const call = { id, name: '', arguments: '', extra: null };
  const slot = { index: typeof index === 'number' ? index : next, call };
  slots.push(slot);
  return slot;
}

function argumentsOf(value: Json | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
