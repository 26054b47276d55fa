/** The request that every row but Weir and Portkey sends on: the client's own, to the bench's upstream. */
export interface BenchEnv {
  /** The URL of the bench's upstream. */
  readonly UPSTREAM: string;
}

/** Clients of a row that rewrites requests name the upstream's model behind it. */
export const UPSTREAM_PREFIX = 'deepseek/';

export function askUpstream(request: Request, env: BenchEnv): Promise<Response> {
  return fetch(new Request(env.UPSTREAM, request));
}
