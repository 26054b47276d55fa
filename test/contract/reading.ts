/** A stream's content, in one form for an upstream's recording and for what a client received. */
import type { JsonObject } from './json.ts';

export interface ToolCall {
  /** The id of the call's first fragment, or "" where that had none. */
  id: string;
  name: string;
  arguments: string;
  /** What the upstream wants back with the call; null where there is none. */
  extra: JsonObject | null;
}

export interface ChoiceReading {
  text: string;
  reasoning: string;
  refusal: string;
  toolCalls: ToolCall[];
  /** Every reasoning detail in its order, as it was sent. */
  details: JsonObject[];
  /** The finish reason as the sender wrote it. */
  finish: string | null;
  logprobTokens: number;
}

/** Tokens; null is a count that was never reported. */
export interface UsageReading {
  prompt: number | null;
  completion: number | null;
  total: number | null;
  cached: number | null;
  cacheWrite: number | null;
  reasoning: number | null;
}

export interface Reading {
  choices: Map<number, ChoiceReading>;
  usage: UsageReading | null;
  /** What of it was reported by the event of the last finish; null where that reported none, or there is no finish. */
  usageByFinish: UsageReading | null;
  /** The failure, as text for people only; null where there was none. */
  error: string | null;
  done: boolean;
}

export function emptyReading(): Reading {
  return { choices: new Map(), usage: null, usageByFinish: null, error: null, done: false };
}

export function emptyChoice(): ChoiceReading {
  return {
    text: '',
    reasoning: '',
    refusal: '',
    toolCalls: [],
    details: [],
    finish: null,
    logprobTokens: 0,
  };
}

export interface SseEvent {
  name: string;
  data: string;
}

/** Splits a whole stream, fully in memory, into events. */
export function* eventsOf(text: string): Generator<SseEvent> {
  let name = '';
  let data: string[] = [];
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/);
  for (const line of [...lines, '']) {
    if (line === '') {
      if (data.length > 0) yield { name, data: data.join('\n') };
      name = '';
      data = [];
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (field === 'data') data.push(value ?? '');
    if (field === 'event') name = value ?? '';
  }
}
