/** Headers that change the policies of one request, with values that are none (Q8, V2). */
import { expect, test } from 'vitest';
import { answerWith, RoutedGateway, settle } from './upstreams.ts';

test.each([
  ['x-weir-unsupported', 'maybe', /must be one of: /],
  ['x-weir-vendor-events', 'x_(', /must be strip, pass, or globs/],
])(
  'V2 Q8 %s: %s: a 400 that names the values, once the body has come, so that no client that still sends it loses the response',
  async (header, value, message) => {
    const { gateway } = new RoutedGateway({ m: [answerWith('Hi')] });
    const body = new TransformStream<Uint8Array, Uint8Array>();
    const headers = { authorization: 'Bearer x', [header]: value };
    const init = { method: 'POST', headers, body: body.readable, duplex: 'half' };
    let hasResponse = false;
    const sent = gateway
      .send(new Request('https://weir.example/v1/chat/completions', init))
      .then((response) => {
        hasResponse = true;
        return response;
      });
    await settle();
    expect(hasResponse).toBe(false);
    const writer = body.writable.getWriter();
    void writer.write(
      new TextEncoder().encode('{"model":"openai/m","messages":[{"role":"user","content":"Hi"}]}'),
    );
    void writer.close();
    const response = await sent;
    expect(response.status).toBe(400);
    expect(await response.text()).toMatch(message);
  },
);
