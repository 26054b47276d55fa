/** Writes the lines of server-sent events. All frames of all protocols come from here, so that no text of a provider becomes a line. */

/** A line end in a name would begin a line of its own. */
const NAME = /^[^\r\n\0]{1,256}$/;

/** Whether a text of a provider may be the name of an event. */
export function isEventName(name: string): boolean {
  return NAME.test(name);
}

/** The lines before an event's data. `""` for no name, and for a name that is none. */
export function frameHead(name: string): string {
  return isEventName(name) ? `event: ${name}\ndata: ` : 'data: ';
}

/** Data after {@link frameHead}, as one `data:` line for each of its lines. */
export function frameData(data: string): string {
  return data.includes('\n') || data.includes('\r') ? data.replace(/\r\n?|\n/g, '\ndata: ') : data;
}

/** A whole event. */
export function frame(name: string, data: string): string {
  return `${frameHead(name)}${frameData(data)}${FRAME_END}`;
}

/** The empty line that ends an event. */
export const FRAME_END = '\n\n';

/** A comment keeps a connection open, and clients skip it. */
export const HEARTBEAT_FRAME = ': heartbeat\n\n';

/** Ends a stream of Chat Completions or Responses. */
export const DONE_FRAME = frame('', '[DONE]');
