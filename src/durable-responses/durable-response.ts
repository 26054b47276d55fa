/** One response: runs it in the background or takes a finished one, keeps it, and deletes it when its time is over. */
import { apiError } from '../canonical/error.ts';
import type { UsageRecord } from '../metering/record.ts';
import { streamErrorOf } from '../protocols/openai-responses/client-errors.ts';
import { responseOfItem } from '../protocols/openai-responses/item-ids.ts';
import { responseIdOf } from '../protocols/openai-responses/response-object.ts';
import { writeEcho } from '../protocols/openai-responses/session.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  parseJson,
  parseJsonExactly,
  readArray,
  readText,
} from '../shared/json.ts';
import { findItems } from './conversation.ts';
import { EventLog, readLog } from './event-log.ts';
import {
  type Frame,
  FrameSplitter,
  HEARTBEAT,
  isEvent,
  isTerminal,
  readFrame,
  splitFrames,
  writeFrame,
} from './frames.ts';
import type {
  Cancelled,
  Conversation,
  Exchange,
  FinishedResponse,
  FoundItem,
  Started,
  StartRequest,
  StoredResponse,
} from './response-calls.ts';
import { type ResponseRow, ResponseTables, type Sql } from './tables.ts';

/** Events are stored at the latest after this time. */
const FLUSH_MS = 1000;
/**
 * An object without requests is evicted after some 70 s, and its upstream call with it (measured in workerd 2026-11-22). An alarm
 * keeps it.
 */
export const ALARM_MS = 20_000;
const HEARTBEAT_MS = 15_000;
/**
 * More than all events that readers may have received and that are not stored: those of one second or one block. A reader's cursor
 * is then below the number of the event that ends an interrupted response.
 */
export const LEAP = 10_000;

export interface ResponsePorts {
  readonly sql: Sql;
  readonly exchange: Exchange;
  /** In ms since the epoch. */
  readonly now: () => number;
  /** @returns a function that cancels the timer */
  readonly startTimer: (ms: number, onFire: () => void) => () => void;
  readonly setAlarm: (at: number) => Promise<void>;
  /** Deletes the alarm and everything that is stored. */
  readonly deleteAll: () => Promise<void>;
  readonly waitUntil: (work: Promise<unknown>) => void;
  readonly log: (entry: Readonly<Record<string, unknown>>) => void;
}

interface StoredState {
  readonly row: ResponseRow;
  readonly events: EventLog;
}

interface Run {
  readonly abort: AbortController;
}

export class DurableResponse {
  readonly #ports: ResponsePorts;
  readonly #tables: ResponseTables;
  #state: StoredState | null = null;
  /** The run in this instance of the object; null: none, or it is over. */
  #run: Run | null = null;
  #cancelFlush: (() => void) | null = null;

  /** Ends a run that an earlier instance of the object has left unfinished. */
  constructor(ports: ResponsePorts) {
    this.#ports = ports;
    this.#tables = new ResponseTables(ports.sql);
    const row = this.#tables.read();
    if (row === null) return;
    const stored = { ...this.#tables.stored(), isOver: row.endedAt !== null };
    this.#state = { row, events: new EventLog(this.#tables, row.maxBytes, stored) };
    if (row.endedAt === null) this.#interrupt(row);
  }

  /** Runs the request. Resolves when it was sent upstream, or was refused before. */
  async start(request: StartRequest): Promise<Started> {
    const abort = new AbortController();
    const sent = Promise.withResolvers<void>();
    const { waitUntil } = this.#ports;
    let interrupted: UsageRecord | undefined;
    const running = this.#ports.exchange.run(request, {
      signal: abort.signal,
      waitUntil,
      onSent: (record) => {
        interrupted = record;
        sent.resolve();
      },
    });
    const early = await Promise.race([running, sent.promise]);
    if (interrupted === undefined && early instanceof Response) {
      const { status, headers } = early;
      return { kind: 'refused', status, headers: [...headers], body: await early.text() };
    }
    const { owner, chain, keptMs, maxBytes, input } = request;
    const queued = queuedResponse(request);
    const record = JSON.stringify(interrupted ?? null);
    const row = { owner, isBackground: true, chain, keptMs, maxBytes, queued, record, endedAt: null };
    this.#tables.create(row, input);
    this.#state = { row, events: new EventLog(this.#tables, maxBytes) };
    this.#run = { abort };
    waitUntil(this.#pump(running, this.#run));
    await this.#ports.setAlarm(this.#ports.now() + ALARM_MS);
    return { kind: 'started', response: queued };
  }

  /** Stores a response that a client has received. */
  async put({ owner, chain, keptMs, maxBytes, input, events }: FinishedResponse): Promise<void> {
    if (this.#state !== null) return;
    const now = this.#ports.now();
    const row = { owner, isBackground: false, chain, keptMs, maxBytes, queued: '', record: '', endedAt: now };
    this.#tables.create(row, input);
    const log = new EventLog(this.#tables, maxBytes);
    for (const frame of new FrameSplitter().add(events)) if (isEvent(frame)) log.append(frame);
    this.#state = { row, events: log };
    await this.#ports.setAlarm(now + keptMs);
  }

  read(owner: string): StoredResponse | null {
    const state = this.#owned(owner);
    if (state === null) return null;
    const { row, events } = state;
    return { response: this.#response(state), isOver: events.isOver, isBackground: row.isBackground };
  }

  /** The events above a number, and those that follow; null: there is no such response. */
  events(owner: string, startingAfter: number): ReadableStream<Uint8Array> | null {
    const state = this.#owned(owner);
    if (state === null) return null;
    const wait = (changed: Promise<void>) => this.#wait(changed);
    return readLog(state.events, startingAfter, wait, HEARTBEAT);
  }

  async cancel(owner: string): Promise<Cancelled> {
    const state = this.#owned(owner);
    if (state === null) return { kind: 'none' };
    if (!state.row.isBackground) return { kind: 'foreground' };
    if (this.#run !== null) {
      this.#run.abort.abort();
      // The SDKs throw on an event `response.cancelled` (openai-node 7.57.0, 2026-11-13).
      await this.#end('incomplete', { status: 'cancelled' });
    }
    return { kind: 'cancelled', response: this.#response(state) };
  }

  async remove(owner: string): Promise<boolean> {
    if (this.#owned(owner) === null) return false;
    await this.cancel(owner);
    await this.#delete();
    return true;
  }

  conversation(owner: string): Conversation | null {
    const state = this.#owned(owner);
    if (state === null) return null;
    const { output } = objectOf(parseJsonExactly(this.#response(state)));
    return {
      chain: state.row.chain,
      input: this.#tables.input(),
      output: JSON.stringify(output ?? []),
      isOver: state.events.isOver,
    };
  }

  items(owner: string, ids: readonly string[]): readonly FoundItem[] | null {
    const conversation = this.conversation(owner);
    const [first = ''] = ids;
    return conversation === null ? null : findItems(conversation, responseOfItem(first) ?? '', ids);
  }

  /** Keeps a running object alive, and deletes what has expired. */
  async alarm(): Promise<void> {
    if (this.#state === null) return;
    const now = this.#ports.now();
    if (this.#run !== null) return this.#ports.setAlarm(now + ALARM_MS);
    const row = this.#tables.read();
    const expiresAt = (row?.endedAt ?? now) + (row?.keptMs ?? 0);
    if (expiresAt <= now) await this.#delete();
    else await this.#ports.setAlarm(expiresAt);
  }

  #owned(owner: string): StoredState | null {
    return this.#state?.row.owner === owner ? this.#state : null;
  }

  async #delete(): Promise<void> {
    this.#state = null;
    await this.#ports.deleteAll();
  }

  /** Moves the events of the run into the log. Never rejects. */
  async #pump(running: Promise<Response>, run: Run): Promise<void> {
    try {
      const response = await running;
      if (!response.ok || response.body === null) return await this.#fail(run, await errorOf(response));
      const splitter = new FrameSplitter();
      for await (const chunk of response.body) {
        for (const frame of splitter.add(chunk)) {
          if (isEvent(frame) && !(await this.#add(frame, run))) return;
        }
      }
      await this.#fail(run, INTERRUPTED);
    } catch (error) {
      this.#ports.log({ event: 'response_run_failed', reason: String(error) });
      await this.#fail(run, INTERRUPTED);
    }
  }

  /** @returns whether further events may follow */
  async #add(frame: Frame, run: Run): Promise<boolean> {
    const state = this.#state;
    if (state === null || this.#run !== run) return false;
    const { events, row } = state;
    if (!events.hasRoomFor(frame)) {
      run.abort.abort();
      const message = `The response has more than ${row.maxBytes} bytes of events (RESPONSE_BYTES): request a shorter output`;
      await this.#fail(run, { code: 'server_error', message });
      return false;
    }
    events.append(frame);
    if (isTerminal(frame)) {
      await this.#finish();
      return false;
    }
    this.#cancelFlush ??= this.#ports.startTimer(FLUSH_MS, () => {
      this.#cancelFlush = null;
      events.flush();
    });
    return true;
  }

  async #fail(run: Run, error: RunError): Promise<void> {
    if (this.#run === run) await this.#end('failed', { status: 'failed', error: { ...error } });
  }

  /** Writes the terminal event that the run itself does not write. */
  async #end(type: 'failed' | 'incomplete', fields: JsonObject): Promise<void> {
    if (this.#state === null) return;
    this.#appendEnd(this.#state, type, fields, 0);
    await this.#finish();
  }

  #appendEnd(state: StoredState, type: 'failed' | 'incomplete', fields: JsonObject, leap: number): void {
    const { events } = state;
    const begun = objectOf(parseJsonExactly(this.#response(state)));
    const output = finishedItems(events);
    if (events.last < 0) events.append(writeFrame('created', { response: begun }, 0));
    const number = events.last + 1 + leap;
    const response = { ...begun, ...fields, output, completed_at: null };
    events.append(writeFrame(type, { response }, number), number);
  }

  async #finish(): Promise<void> {
    this.#run = null;
    this.#cancelFlush?.();
    this.#cancelFlush = null;
    const now = this.#ports.now();
    this.#tables.end(now);
    await this.#ports.setAlarm(now + (this.#state?.row.keptMs ?? 0));
  }

  /** The upstream call of an unfinished run has ended with the instance of the object that made it. */
  #interrupt(row: ResponseRow): void {
    if (this.#state === null) return;
    const fields = { status: 'failed', error: { ...INTERRUPTED } };
    this.#appendEnd(this.#state, 'failed', fields, LEAP);
    const now = this.#ports.now();
    this.#tables.end(now);
    const record = decodeUsageRecord(row.record);
    const { exchange, waitUntil } = this.#ports;
    const writing = record === null ? null : exchange.writeInterrupted(record, waitUntil);
    waitUntil(Promise.all([writing, this.#ports.setAlarm(now + row.keptMs)]));
    this.#ports.log({ event: 'response_interrupted', request_id: record?.request_id });
  }

  /** The response object as it is: JSON text. */
  #response({ row, events }: StoredState): string {
    if (events.isOver) {
      const block = events.after(events.last - 1);
      const last = block === null ? undefined : splitFrames(block.bytes).at(-1);
      return last === undefined ? row.queued : responseJson(last);
    }
    const first = events.after(-1);
    const created = first === null ? undefined : splitFrames(first.bytes)[0];
    return created === undefined ? row.queued : responseJson(created);
  }

  /** @returns whether `changed` has resolved before it is time for a heartbeat */
  #wait(changed: Promise<void>): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const cancel = this.#ports.startTimer(HEARTBEAT_MS, () => resolve(false));
    void changed.then(() => {
      cancel();
      resolve(true);
    });
    return promise;
  }
}

interface RunError {
  readonly code: string;
  readonly message: string;
}

const INTERRUPTED: RunError = {
  code: 'server_error',
  message: 'The run was interrupted, because the gateway restarted: send the request again',
};

/** The error of a run whose targets all failed before any output. */
async function errorOf(response: Response): Promise<RunError> {
  const { error } = objectOf(parseJson(await response.text()));
  const { message, code } = objectOf(error);
  const failed = { ...apiError('internal_error', readText(message) ?? ''), status: response.status };
  return streamErrorOf({ error: { ...failed, code: readText(code) ?? failed.code }, upstreamError: null });
}

/** The response object before the first event. */
function queuedResponse({ requestId, body, arrivedAt, kept }: StartRequest): string {
  const request = objectOf(parseJson(body));
  const head = {
    id: responseIdOf(requestId),
    object: 'response',
    created_at: Math.floor(arrivedAt / 1000),
    status: 'queued',
    completed_at: null,
    error: null,
    incomplete_details: null,
    model: request.model,
    usage: null,
    output: [],
  };
  const tools = readArray(request.tools).filter(isObject);
  return `${JSON.stringify(head).slice(0, -1)},${writeEcho(request, tools, kept)}}`;
}

/** The items that were complete: of a run without a terminal event of its own. */
function finishedItems(events: EventLog): readonly JsonObject[] {
  const items: JsonObject[] = [];
  for (let block = events.after(-1); block !== null; block = events.after(block.last)) {
    for (const bytes of splitFrames(block.bytes)) {
      const { type, item } = readFrame(bytes);
      if (type === 'response.output_item.done' && isObject(item)) items.push(item);
    }
  }
  return items;
}

function responseJson(frame: Uint8Array): string {
  return JSON.stringify(readFrame(frame).response);
}

/** The usage record that the object itself has stored. */
function decodeUsageRecord(json: string): UsageRecord | null {
  const record = parseJson(json);
  return isObject(record) ? (record as unknown as UsageRecord) : null; // decode
}
