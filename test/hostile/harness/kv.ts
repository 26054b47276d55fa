/** An in-memory KV server for workerd that stores usage records and finds no other entries. */
import { wholeResponse } from '../../../bench/load/http1.ts';
import { serve } from '../../../bench/load/serve.ts';
import { decodeObject, type JsonObject } from '../../../tools/simulator/json.ts';

const NO_KEYS = JSON.stringify({ keys: [], list_complete: true });

export interface Kv {
  readonly port: number;
  /** All written records, in order. */
  readonly records: readonly JsonObject[];
}

export async function startKv(): Promise<Kv> {
  const records: JsonObject[] = [];
  const port = await serve(({ method, path, body, socket }) => {
    if (path.startsWith('/?')) return void socket.write(wholeResponse(200, 'application/json', NO_KEYS));
    if (method !== 'PUT') return void socket.write(wholeResponse(404, 'text/plain', ''));
    if (path.startsWith('/usage')) records.push(decodeObject(body) ?? { unreadable: body });
    socket.write(wholeResponse(200, 'text/plain', ''));
  });
  return { port, records };
}
