/** A provider whose streams stay open until a test ends them. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The first output of each stream. */
export const WORD = 'word';

/** An upstream that sends the first chunk, and the rest when it is told to. */
export class HeldUpstream {
  readonly #open = new Set<ServerResponse>();
  readonly #server = createServer((incoming, response) => {
    incoming.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(event({ choices: [{ index: 0, delta: { role: 'assistant', content: WORD } }] }));
      this.#open.add(response);
      response.on('close', () => this.#open.delete(response));
    });
  });

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', 4096, resolve));
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  get open(): number {
    return this.#open.size;
  }

  /** Ends all streams, with the usage of each. */
  finish(): void {
    for (const response of this.#open) {
      response.write(event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }));
      response.write(
        event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } }),
      );
      response.end('data: [DONE]\n\n');
    }
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

function event(fields: object): string {
  return `data: ${JSON.stringify({ id: 'a', object: 'chat.completion.chunk', created: 1, model: 'm', ...fields })}\n\n`;
}
