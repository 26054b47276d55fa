/** Describes why a prompt was not read from the provider's cache, and what to do about it. */
import type { UsageRecord } from '../api/types.ts';

type Cache = NonNullable<UsageRecord['cache']>;

interface Words {
  readonly title: string;
  /** What to do; empty where there is nothing. */
  readonly advice: string;
}

const WORDS: Readonly<Record<Cache['cause'], Words>> = {
  first: { title: 'A new conversation', advice: '' },
  none: { title: 'Read from the cache', advice: '' },
  unknown: { title: 'Not known', advice: '' },
  model: {
    title: 'Another model',
    advice: 'Each model has its own cache: change the model between conversations.',
  },
  target: {
    title: 'Another provider, account or API',
    advice: 'Each has its own cache: send a session id, so that weights keep a session where it is.',
  },
  settings: {
    title: 'Thinking, tool choice or output format changed',
    advice: 'They stand before the conversation: keep them for all of it.',
  },
  tools: {
    title: 'The tools changed',
    advice: 'A client that lists its tools in another order, or adds one, starts a new cache.',
  },
  system: {
    title: 'The system text changed',
    advice: 'A date or a status in it starts a new cache: put it into the last message.',
  },
  history: {
    title: 'An earlier message changed',
    advice: 'What follows a changed message is read again: shorten old results rarely, and many at once.',
  },
  expired: {
    title: 'The pause was longer than the provider keeps a prompt',
    advice: 'Ask for a longer time, such as "ttl": "1h" at Anthropic.',
  },
  provider: {
    title: 'The provider did not read its cache',
    advice: 'Nothing changed on your side: the provider may have moved the request, or made room.',
  },
};

const REASONS: Readonly<Record<NonNullable<Cache['by']>, string>> = {
  fallback: 'after a fallback',
  circuit: 'because of an open circuit',
  weight: 'by weight',
};

const NOT_BREAKS: readonly string[] = ['first', 'none', 'unknown', ''];

/** Whether the cause is a break of the cache. */
export function isBreak(cause: string): boolean {
  return !NOT_BREAKS.includes(cause);
}

export function causeTitle(cause: string): string {
  return Object.hasOwn(WORDS, cause) ? WORDS[cause as Cache['cause']].title : 'Not compared'; // decode
}

export function cacheTitle({ cause, at, by }: Cache): string {
  const turn = at === undefined || at === 0 ? '' : `, ${at} turns before the last`;
  return `${WORDS[cause].title}${turn}${by === undefined ? '' : ` ${REASONS[by]}`}`;
}

export function cacheAdvice({ cause }: Cache): string {
  return WORDS[cause].advice;
}
