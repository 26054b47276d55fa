/** An in-memory KV server for workerd: stores keys, and only counts usage records. */
import { headerOf, wholeResponse } from './http1.ts';
import { serve } from './serve.ts';

const keys = new Map<string, string>();
let records = 0;
let recordBytes = 0;

/** The number of usage records written so far. */
export function recordsWritten(): number {
  return records;
}

/** The bytes of their keys, metadata and values. */
export function recordBytesWritten(): number {
  return recordBytes;
}

export function startKv(): Promise<number> {
  return serve(({ method, path, headers, body, socket }) => {
    const key = decodeURIComponent(path.slice(1).split('?')[0] ?? '');
    const isKey = key.startsWith('key/');
    if (method === 'PUT') {
      if (isKey) keys.set(key, body);
      else {
        records++;
        recordBytes += path.length + body.length + (headerOf(headers, 'cf-kv-metadata') ?? '').length;
      }
      socket.write(wholeResponse(200, 'text/plain', ''));
      return;
    }
    const value = keys.get(key);
    socket.write(wholeResponse(value === undefined ? 404 : 200, 'text/plain', value ?? ''));
  });
}
