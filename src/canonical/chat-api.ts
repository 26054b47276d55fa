/** The two APIs by which a chat request can reach a model. */
export type ChatApi = 'chat' | 'responses';
