/** The log of a Worker and of its Durable Objects. */

/** Writes an event as one line of JSON, which Workers Logs index by field. */
export function log(entry: Readonly<Record<string, unknown>>): void {
  // biome-ignore lint/suspicious/noConsole: the console is a Worker's log.
  console.log(JSON.stringify(entry));
}
