/** The signal of a client's request: who waits for a disconnect, and until when. */
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { type Behavior, DONE, event, json, RoutedGateway, refuse, sse, USAGE } from './upstreams.ts';

const OBJECT = {
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
};
const STREAM = sse(event({ role: 'assistant', content: 'Hi' }), event({}, 'stop'), DONE);
const EMBEDDINGS = json({ object: 'list', data: [{ index: 0, embedding: [0.5] }], usage: USAGE });

describe('B1 the runtime keeps what a listener refers to', () => {
  test.each<[name: string, path: string, behavior: Behavior, fields: object]>([
    ['a stream', '/v1/chat/completions', STREAM, { stream: true }],
    ['an object', '/v1/chat/completions', json(OBJECT), {}],
    ['embeddings', '/v1/embeddings', EMBEDDINGS, { input: 'Hi' }],
    ['a refusal', '/v1/chat/completions', refuse(400), {}],
  ])(
    '%s: the listener at the request is there until the record is written, and no longer',
    async (_, path, behavior, fields) => {
      const routed = new RoutedGateway({ m: [behavior] });
      const body = JSON.stringify({
        model: 'openai/m',
        messages: [{ role: 'user', content: 'Hello' }],
        ...fields,
      });
      const headers = { authorization: 'Bearer x' };
      const request = new Request(`https://weir.example${path}`, { method: 'POST', headers, body });
      const listeners = () => getEventListeners(request.signal, 'abort').length;
      let during = 0;
      routed.onRequest = () =>
        queueMicrotask(() => {
          during = listeners();
        });
      await (await routed.gateway.send(request)).arrayBuffer();
      await routed.gateway.idle();
      expect([during, listeners()]).toEqual([1, 0]);
    },
  );
});
