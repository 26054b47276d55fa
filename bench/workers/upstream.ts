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
