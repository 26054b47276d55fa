/** Requests for a WebSocket, which no route has. */
import { expect, test } from 'vitest';
import { decodeObject } from '../../tools/simulator/json.ts';
import { LimitedGateway } from './limited-gateway.ts';

const UPGRADE = { headers: { connection: 'Upgrade', upgrade: 'WebSocket' } };

test.each(['/v1/responses', '/responses', '/v1/chat/completions'])(
  'J2: a request for a WebSocket on %s gets 426 with an error that says to use HTTP',
  async (path) => {
    const response = await new LimitedGateway({ AUTH: 'open' }).fetch(path, 'x', UPGRADE);
    expect(response.status).toBe(426);
    expect(decodeObject(await response.text())?.error).toMatchObject({
      code: 'websocket_unsupported',
      message: 'This gateway has no WebSocket: send POST requests over HTTP to this route',
    });
  },
);

test('J2: without the header Upgrade, GET /v1/responses gets 405', async () => {
  const response = await new LimitedGateway({ AUTH: 'open' }).fetch('/v1/responses', 'x');
  expect(response.status).toBe(405);
});
