/** Puts system messages where a provider, or the template of its model, takes them: what it does not take as one is the user's (Q1). */
import { matchesAnyGlob } from '../shared/glob.ts';
import { isObject, type JsonObject, readArray } from '../shared/json.ts';
import type { SystemRule } from './rules.ts';

/**
 * The conversation by the first rule that names the model: itself where none does. A late system message becomes the user's where it
 * stands, and no part of the first one: a prompt cache knows a conversation by its beginning.
 */
export function placeSystemMessages(
  messages: readonly unknown[],
  model: string,
  rules: readonly SystemRule[] = [],
): readonly unknown[] {
  const rule = rules.find(({ models }) => models === undefined || matchesAnyGlob(models, model));
  if (rule === undefined) return messages;
  const first = messages.findIndex((message) => !isSystem(message));
  // Of system messages alone the last one asks.
  const at = first < 0 ? messages.length - 1 : first;
  const leading = messages.slice(0, at).filter(isObject);
  const isJoined = rule.place === 'first' && leading.length > 1;
  return [...(isJoined ? [join(leading)] : leading), ...withoutSystem(messages.slice(at))];
}

function isSystem(message: unknown): message is JsonObject {
  return isObject(message) && (message.role === 'system' || message.role === 'developer');
}

interface Turn {
  readonly message: unknown;
  /** It was a system message, and nothing else. */
  readonly isLate: boolean;
}

/** What becomes one message of the user's: at most one of them is the user's own, and all others were system messages. */
interface Run {
  readonly messages: JsonObject[];
  /** It gives the message its other members. */
  whose: JsonObject;
  isLate: boolean;
}

/** With the user's message beside it, a late one makes one message, so that roles go on to alternate. */
function withoutSystem(messages: readonly unknown[]): readonly unknown[] {
  const runs: (Run | { readonly other: unknown })[] = [];
  for (const { message, isLate } of behindResults(messages)) {
    const last = runs.at(-1);
    if (!isUser(message)) runs.push({ other: message });
    else if (last === undefined || 'other' in last || !(last.isLate || isLate)) {
      runs.push({ messages: [message], whose: message, isLate });
    } else {
      last.messages.push(message);
      if (last.isLate) last.whose = message;
      last.isLate &&= isLate;
    }
  }
  // Joined once: at every message it would cost the square of them.
  return runs.map((run) => ('other' in run ? run.other : messageOf(run)));
}

function messageOf({ messages, whose }: Run): JsonObject {
  return messages.length === 1 ? whose : { ...whose, content: join(messages).content };
}

/** Late system messages as the user's: between a call and its results nothing else is taken, so they stand behind those. */
function behindResults(messages: readonly unknown[]): readonly Turn[] {
  const turns: Turn[] = [];
  const late: Turn[] = [];
  for (const message of messages) {
    if (isSystem(message)) late.push({ message: { ...message, role: 'user' }, isLate: true });
    else {
      const isResult = isObject(message) && message.role === 'tool';
      if (!isResult) for (const turn of late.splice(0)) turns.push(turn);
      turns.push({ message, isLate: false });
    }
  }
  return [...turns, ...late];
}

function isUser(message: unknown): message is JsonObject {
  return isObject(message) && message.role === 'user';
}

/** The first one, with the contents of all. */
function join(messages: readonly JsonObject[]): JsonObject {
  const contents = messages.map(({ content }) => content);
  const isText = contents.every((content) => typeof content === 'string');
  return { ...messages[0], content: isText ? contents.join('\n\n') : contents.flatMap(partsOf) };
}

function partsOf(content: unknown): readonly unknown[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : readArray(content);
}
