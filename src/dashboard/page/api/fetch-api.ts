/** Calls the deployment's API with the token of the session. */

import { type Answer, problemOf } from './problem.ts';

/** The deployment's base path: the page is at `<base>/dashboard`. */
const BASE = location.pathname.replace(/\/dashboard\/?$/, '');

/** Where clients find the deployment: what Anthropic's clients call their base URL. OpenAI's have `/v1` behind it. */
export const BASE_URL = location.origin + BASE;

/** The page of documents; null: this host has none. */
export const DOCS_URL = 'withoutDocs' in document.documentElement.dataset ? null : `${BASE}/dashboard/docs`;

export class Api {
  readonly #token: string;

  /** @param token empty: no credential is sent, as with AUTH=open or Cloudflare Access */
  constructor(token: string) {
    this.#token = token;
  }

  get<Value>(path: string, params: Readonly<Record<string, string>> = {}, signal?: AbortSignal) {
    const query = new URLSearchParams(params).toString();
    return this.#call<Value>(query === '' ? path : `${path}?${query}`, signal ? { signal } : {});
  }

  send<Value>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown) {
    const headers = { ...this.#headers(), 'content-type': 'application/json' };
    return this.#call<Value>(
      path,
      body === undefined ? { method } : { method, headers, body: JSON.stringify(body) },
    );
  }

  /** A streamed response. Rejects if the deployment can't be reached or the signal aborts. */
  stream(path: string, body: unknown, signal: AbortSignal): Promise<Response> {
    const headers = { ...this.#headers(), 'content-type': 'application/json' };
    return fetch(BASE + path, { method: 'POST', headers, body: JSON.stringify(body), signal });
  }

  async #call<Value>(path: string, init: RequestInit): Promise<Answer<Value>> {
    try {
      const response = await fetch(BASE + path, { headers: this.#headers(), ...init, cache: 'no-store' });
      const text = await response.text();
      if (!response.ok) return { kind: 'problem', problem: problemOf(response.status, text) };
      const value: Value = JSON.parse(text);
      return { kind: 'answer', value };
    } catch {
      return { kind: 'problem', problem: { kind: 'offline' } };
    }
  }

  #headers(): Record<string, string> {
    return this.#token === '' ? {} : { authorization: `Bearer ${this.#token}` };
  }
}

/** @param token null: read from the environment */
export function curlOf(
  token: string | null,
  body: Readonly<Record<string, unknown>>,
  path = '/v1/chat/completions',
): string {
  const json = JSON.stringify(body).replaceAll("'", "'\\''");
  return [
    `curl ${BASE_URL}${path.replace('?', '\\?')}`,
    `-H "authorization: Bearer ${token ?? '$WEIR_KEY'}"`,
    "-H 'content-type: application/json'",
    `-d '${json}'`,
  ].join(' \\\n  ');
}
