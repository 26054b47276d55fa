/** Upstream streams written short: what the tests of the plain reading and of the differences are made from. */
import type { JsonObject } from './json.ts';
import { type Reading, readUpstream } from './plain-reading.ts';

/** Reads a stream of these events; a text is an event's own lines. */
export function upstream(...values: (JsonObject | string)[]): Reading {
  const lines = values.map((value) => (typeof value === 'string' ? value : `data: ${JSON.stringify(value)}`));
  return readUpstream(`${lines.join('\n\n')}\n\n`, 'sse');
}

export const said = (delta: JsonObject, more: JsonObject = {}) => ({
  choices: [{ index: 0, delta, ...more }],
});
export const calling = (...fragments: JsonObject[]) => said({ tool_calls: fragments });
export const done = 'data: [DONE]';
