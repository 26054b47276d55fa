/** Runs background requests inside their objects with the code that serves foreground requests. */
import type { CompletionContext } from '../completion/admission.ts';
import { handleCompletion } from '../completion/handler.ts';
import type { Ports } from '../http/context.ts';
import { written } from '../http/respond.ts';
import { withoutCharge } from '../metering/record.ts';
import { isoTime } from '../metering/time.ts';
import { responsesClient } from '../protocols/openai-responses/client.ts';
import { type JsonObject, objectOf, parseJsonExactly, readText } from '../shared/json.ts';
import type { Exchange, ExchangeRequest } from './response-calls.ts';

/** Creates the context of a request that an object runs. */
export type NewContext = (
  request: Pick<ExchangeRequest, 'requestId' | 'arrivedAt'>,
  waitUntil: (work: Promise<unknown>) => void,
) => CompletionContext;

/** In seconds. */
function createdAt(arrivedAt: number): number {
  return Math.floor(arrivedAt / 1000);
}

function readBody(body: Uint8Array): JsonObject {
  return objectOf(parseJsonExactly(new TextDecoder().decode(body)));
}

/** @param newContext throws while settings are invalid */
export function createExchange(
  newContext: NewContext,
  { now, log }: { readonly now: () => number; readonly log: Ports['log'] },
): Exchange {
  return {
    run: async (exchange, { signal, waitUntil, onSent, abortError, onEnd, onRecordWritten }) => {
      const context = newContext(exchange, waitUntil);
      const { caller, headers, body, kept, arrivedAt } = exchange;
      const streamed: JsonObject = { ...readBody(body), stream: true };
      const request = new Request('https://weir-responses/v1/responses', {
        method: 'POST',
        headers: headers.map(([name, value]) => [name, value]),
        body: JSON.stringify(streamed),
        signal,
      });
      // The request has passed the limiter.
      const ports = { ...context.ports, limiter: null };
      const records: CompletionContext['records'] = {
        write: async (record, startTimer) => {
          await onEnd(record);
          await context.records.write(record, startTimer);
          onRecordWritten();
        },
      };
      const exchangeOptions = { ports, records, hostCaller: caller, onSent, abortError };
      const client = responsesClient({ ...kept, createdAt: createdAt(arrivedAt) });
      const route = { route: 'chat', client } as const;
      return written(await handleCompletion(request, route, { ...context, ...exchangeOptions }), context);
    },
    queued: ({ body, arrivedAt, kept }, id) => {
      const request = readBody(body);
      const clientRequest = responsesClient(kept).readRequest(request);
      const head = {
        id,
        object: 'response',
        created_at: createdAt(arrivedAt),
        status: 'queued',
        completed_at: null,
        error: null,
        incomplete_details: null,
        model: readText(request.model) ?? '',
        usage: null,
        output: [],
      };
      const echo = clientRequest.kind === 'ok' ? `,${clientRequest.value.session.echo}` : '';
      return `${JSON.stringify(head).slice(0, -1)}${echo}}`;
    },
    interrupted: (record) => {
      const arrivedAt = Date.parse(record.time);
      const endedAt = now();
      const interrupted = { ...record, ended: isoTime(endedAt), total_ms: endedAt - arrivedAt };
      log({ event: 'request', ...withoutCharge(interrupted) });
      return interrupted;
    },
    writeRecord: async (record, waitUntil) => {
      const arrivedAt = Date.parse(record.time);
      const { records, ports } = newContext({ requestId: record.request_id, arrivedAt }, waitUntil);
      await records.write(record, ports.clock.startTimer);
    },
  };
}
