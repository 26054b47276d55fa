/** Hand-written upstream responses (scenarios), selected by the model's name. */
import type { RecordedRequest } from '../../tools/simulator/recorded-request.ts';
import type { Replay } from '../../tools/simulator/server.ts';

export interface Scenario extends Omit<Replay, 'chunks' | 'ends'> {
  readonly chunks: readonly string[];
  readonly ending?: NonNullable<Replay['ends']>;
}

/** Turns off all three timers; a test sets the ones that it needs. */
export const CLOCKS_OFF = { HEARTBEAT_SECONDS: '0', IDLE_TIMEOUT_SECONDS: '0', DEADLINE_SECONDS: '0' };

/** An upstream's data event. */
export function event(content: string, finish_reason: string | null = null): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`;
}

export function many<Item>(item: Item, count: number): Item[] {
  return Array.from({ length: count }, () => item);
}

/** Encodes each distinct text once. */
function bytesOf(chunks: readonly string[]): Uint8Array[] {
  const bytes = new Map([...new Set(chunks)].map((text) => [text, Buffer.from(text)]));
  return chunks.map((text) => bytes.get(text) ?? Buffer.alloc(0));
}

/** Replays the scenario of a model; undefined for other models, which their scene serves. */
export function replayOf(scenarios: Readonly<Record<string, Scenario>>) {
  return ({ body }: RecordedRequest): Replay | undefined => {
    const model = String(body?.model);
    const scenario = Object.hasOwn(scenarios, model) ? scenarios[model] : undefined;
    if (scenario === undefined) return undefined;
    const { chunks, ending = 'end', ...rest } = scenario;
    return { ...rest, ends: ending, chunks: bytesOf(chunks) };
  };
}
