/** A stream's content, in one form for an upstream's recording and for what a client received. */
import type { JsonObject } from './json.ts';

export interface ToolCall {
  /** The id of the call's first fragment, or "". */
  id: string;
  name: string;
  arguments: string;
  /** What the upstream wants back with the call, or null. */
  extra: JsonObject | null;
}

export interface ChoiceContent {
  text: string;
  reasoning: string;
  refusal: string;
  toolCalls: ToolCall[];
  /** Every reasoning detail as sent, in order. */
  details: JsonObject[];
  /** The finish reason as the sender wrote it. */
  finish: string | null;
  logprobTokens: number;
}

/** Tokens. Null: not reported. */
export interface UsageContent {
  prompt: number | null;
  completion: number | null;
  total: number | null;
  cached: number | null;
  cacheWrite: number | null;
  reasoning: number | null;
}

export interface Content {
  choices: Map<number, ChoiceContent>;
  usage: UsageContent | null;
  /** The usage that was reported by the event of the last finish, or null. */
  usageByFinish: UsageContent | null;
  /** The failure as text for people, or null. */
  error: string | null;
  done: boolean;
}

export function emptyContent(): Content {
  return { choices: new Map(), usage: null, usageByFinish: null, error: null, done: false };
}

export function emptyChoice(): ChoiceContent {
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

/** Splits a complete stream into events. */
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
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (field === 'data') data.push(value ?? '');
    if (field === 'event') name = value ?? '';
  }
}
