/** What the cases of several areas share. */

/** Each word is there once, so that a word that is lost, doubled or moved can be named. */
export const TEXT = 'one two three four five six seven eight';
export const THOUGHT = 'first consider then decide';
export const BERN = '{"city":"Bern"}';
export const OSLO = '{"city":"Oslo"}';

export const CHAT = { upstream: 'chat', client: 'chat' } as const;
export const MESSAGES_CHAT = { upstream: 'messages', client: 'chat' } as const;
export const RESPONSES_CHAT = { upstream: 'responses', client: 'chat' } as const;
export const GEMINI_CHAT = { upstream: 'gemini', client: 'chat' } as const;
export const CHAT_MESSAGES = { upstream: 'chat', client: 'messages' } as const;
export const CHAT_RESPONSES = { upstream: 'chat', client: 'responses' } as const;
export const GEMINI_MESSAGES = { upstream: 'gemini', client: 'messages' } as const;
export const CHAT_GEMINI = { upstream: 'chat', client: 'gemini' } as const;
export const GEMINI = { upstream: 'gemini', client: 'gemini' } as const;
export const MESSAGES = { upstream: 'messages', client: 'messages' } as const;
export const RESPONSES = { upstream: 'responses', client: 'responses' } as const;

export const TOOLS = { hasTools: true } as const;
