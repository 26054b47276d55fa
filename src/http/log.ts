/** The log of a Worker and of its Durable Objects. */
import type { LogEntry } from '../shared/log-event.ts';

/** Writes an event as one line of JSON, which Workers Logs index by field. */
export function log(entry: LogEntry, text = JSON.stringify(entry)): void {
  // biome-ignore lint/suspicious/noConsole: the console is a Worker's log.
  console.log(text);
}
