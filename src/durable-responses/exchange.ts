/** Runs background requests inside their objects with the code that serves foreground requests. */
import type { CompletionContext } from '../completion/admission.ts';
import { handleCompletion } from '../completion/handler.ts';
import type { UsageRecord } from '../metering/record.ts';
import { responsesClient } from '../protocols/openai-responses/client.ts';
import { type JsonObject, objectOf, parseJsonExactly } from '../shared/json.ts';
import type { Exchange, ExchangeRequest } from './response-calls.ts';

/** The context of a request that no client's request has made. */
export type NewContext = (
  request: Pick<ExchangeRequest, 'requestId' | 'arrivedAt'>,
  waitUntil: (work: Promise<unknown>) => void,
) => CompletionContext;

export function createExchange(newContext: NewContext): Exchange {
  return {
    run: (exchange, { signal, waitUntil, onSent }) => {
      const context = newContext(exchange, waitUntil);
      const { caller, headers, body, kept } = exchange;
      const streamed: JsonObject = { ...objectOf(parseJsonExactly(body)), stream: true };
      const request = new Request('https://weir-responses/v1/responses', {
        method: 'POST',
        headers: headers.map(([name, value]) => [name, value]),
        body: JSON.stringify(streamed),
        signal,
      });
      // The request has passed the limiter.
      const ports = { ...context.ports, limiter: null };
      const route = { route: 'chat', client: responsesClient(kept) } as const;
      return handleCompletion(request, route, { ...context, ports, hostCaller: caller, onSent });
    },
    writeInterrupted: async (record: UsageRecord, waitUntil) => {
      const arrivedAt = Date.parse(record.time);
      const context = newContext({ requestId: record.request_id, arrivedAt }, waitUntil);
      const { clock, log } = context.ports;
      const now = clock.now();
      const ended = { ...record, ended: new Date(now).toISOString(), total_ms: now - arrivedAt };
      log({ event: 'request', ...ended });
      await context.records.write(ended, clock.startTimer);
    },
  };
}
