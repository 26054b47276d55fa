/** The remote side of workerd's binding `AI`: hands each call to the simulator of Cloudflare's API, as Cloudflare hands it to a model. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ACCOUNT } from '../../tools/simulator/cloudflare.ts';
import { decodeObject, type JsonObject, objectOf, textOf } from '../../tools/simulator/json.ts';
import type { WorkerOptions } from './workers.ts';

/** The binding in Miniflare: workerd's real class, whose remote is elsewhere. */
export const AI_BINDING = {
  AI: { type: 'ai', dev: { remote: true } },
} as const satisfies WorkerOptions['bindings'];

export class AiRemote implements AsyncDisposable {
  /** The names of the models that were called. */
  readonly models: string[] = [];
  /** The simulator, without a trailing slash: known after the start. */
  simulatorUrl = '';
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<AiRemote> {
    const remote = new AiRemote();
    await new Promise<void>((resolve) => remote.#server.listen(0, '127.0.0.1', resolve));
    return remote;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = decodeObject(Buffer.concat(chunks).toString()) ?? {};
    const model = textOf(request.headers['mf-header-cf-consn-model-id']);
    this.models.push(model);
    const inputs = objectOf(body.inputs);
    const answered = await fetch(
      `${this.simulatorUrl}/cloudflare/client/v4/accounts/${ACCOUNT}/ai/v1/${pathOf(model, inputs)}`,
      {
        method: 'POST',
        headers: {
          ...{ 'content-type': 'application/json', authorization: 'Bearer sim-cloudflare-5de048' },
          ...{ 'cf-aig-gateway-id': 'default', 'anthropic-version': '2023-06-01' },
        },
        body: JSON.stringify({ model, ...inputs }),
      },
    );
    const type = answered.headers.get('content-type') ?? 'application/json';
    response.writeHead(answered.status, {
      'content-type': type,
      'cf-aig-run-id': `run-${this.models.length}`,
    });
    for await (const bytes of answered.body ?? []) response.write(bytes);
    response.end();
  }
}

/** The binding has no path: the maker and the form of the inputs tell the API. */
function pathOf(model: string, inputs: JsonObject): string {
  if (model.startsWith('anthropic/')) return 'messages';
  return inputs.input === undefined ? 'chat/completions' : 'responses';
}
