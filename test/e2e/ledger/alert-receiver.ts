/** A receiver of alerts over HTTP, and the check that the documents tell receivers to make. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { decodeObject, type JsonObject, objectOf } from '../../../tools/simulator/json.ts';

export const ALERT_SECRET = 'a-secret-of-the-tests';

export interface Alert {
  readonly signature: string | undefined;
  readonly text: string;
  readonly body: JsonObject;
}

/** What docs/alerts.md tells receivers to check. */
export function isSigned({ signature = '', text }: Alert, now = Date.now()): boolean {
  const [, seconds = '', digest = ''] = /^t=(\d+),sha256=([0-9a-f]{64})$/.exec(signature) ?? [];
  const expected = createHmac('sha256', ALERT_SECRET).update(`${seconds}.${text}`).digest();
  const isRecent = Math.abs(now / 1000 - Number(seconds)) <= 300;
  return isRecent && digest !== '' && timingSafeEqual(expected, Buffer.from(digest, 'hex'));
}

/** A receiver of alerts, and the one that arrives next. @param statuses of its first responses; then 204 */
export async function startReceiver(...statuses: number[]) {
  const waiting: ((alert: Alert) => void)[] = [];
  const arrived: Alert[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const signature = request.headers['x-weir-signature'];
    const alert = { signature: String(signature), text: body, body: objectOf(decodeObject(body)) };
    arrived.push(alert);
    waiting.shift()?.(alert);
    response.writeHead(statuses.shift() ?? 204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/weir`,
    arrived,
    next: () => new Promise<Alert>((resolve) => waiting.push(resolve)),
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}
