/** Forwards the client's request to the bench's upstream, for all rows except Weir and Portkey. */
export interface BenchEnv {
  /** The URL of the bench's upstream. */
  readonly UPSTREAM: string;
}

/** For rows that rewrite requests, clients put this before the upstream's model name. */
export const UPSTREAM_PREFIX = 'deepseek/';

export function fetchUpstream(request: Request, env: BenchEnv): Promise<Response> {
  return fetch(new Request(env.UPSTREAM, request));
}

/** Writes what it makes of the upstream's body, and closes the stream. */
type Pump = (body: ReadableStream<Uint8Array>, writable: WritableStream<Uint8Array>) => Promise<void>;

/** A Worker that carries the upstream's body to the client by `pump`. */
export function pumpedBy(pump: Pump): ExportedHandler<BenchEnv> {
  return {
    async fetch(request, env, context) {
      const { body, headers } = await fetchUpstream(request, env);
      const { readable, writable } = new IdentityTransformStream();
      if (body !== null) context.waitUntil(pump(body, writable));
      return new Response(readable, { headers });
    },
  };
}
