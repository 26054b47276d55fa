/** A request that the simulator received, and how its response ended. */
import type { IncomingHttpHeaders } from 'node:http';
import type { JsonObject } from './json.ts';

/** `disconnected`: the client closed the connection before the response was complete. `aborted`: the simulator did. */
export type Ending = 'finished' | 'disconnected' | 'aborted';

export interface RecordedRequest {
  readonly serial: number;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Undefined if the text is not a JSON object. */
  readonly body: JsonObject | undefined;
  /** Grows while the response is sent, at the speed of the reader. */
  bytesSent: number;
  readonly closed: Promise<Ending>;
}
