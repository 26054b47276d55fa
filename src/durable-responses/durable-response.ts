/** One response: runs it in the background or takes a finished one, keeps it, and deletes it when its time is over. */
import { type ApiError, apiError } from '../canonical/error.ts';
import type { ChargedRecord } from '../metering/record.ts';
import { streamErrorOf } from '../protocols/openai-responses/client-errors.ts';
import { responseOfItem } from '../protocols/openai-responses/item-ids.ts';
import { responseIdOf } from '../protocols/openai-responses/response-object.ts';
import {
  isObject,
  type JsonObject,
  objectOf,
  parseJson,
  parseJsonExactly,
  readText,
} from '../shared/json.ts';
import type { Log } from '../shared/log-event.ts';
import { findItems, readList, textBytesOf } from './conversation.ts';
import { EventLog, LogReaders } from './event-log.ts';
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
  SettledResponse,
  Started,
  StartRequest,
  StoredInput,
  StoredResponse,
} from './response-calls.ts';
import { type ResponseRow, ResponseTables, type Sql, type UnreadableRow } from './tables.ts';

/** Events are stored at the latest after this time. */
const FLUSH_MS = 1000;
/**
 * An object without requests is evicted after some 70 s, and its upstream call with it (measured in workerd 2026-11-22). An alarm
 * keeps it.
 */
export const ALARM_MS = 20_000;
const HEARTBEAT_MS = 15_000;
/** How long the end of a run waits for the record of its exchange. */
const RECORD_MS = 5000;
/**
 * More than all events that readers may have received and that are not stored: those of one second or one block. A reader's cursor
 * is then below the number of the event that ends an interrupted response.
 */
export const MAX_UNSTORED_EVENTS = 10_000;
/** How long a run that failed without output is kept: long enough to be read, and no storage that nothing was paid for. */
const FAILED_MS = 10 * 60_000;
/** When a row that is unreadable, and whose response may run in other code, is looked at again. */
const LOOK_AGAIN_MS = 86_400_000;
/** How long a response without a readable expiry and without an alarm is kept from now on: as long as OpenAI keeps one. */
const UNREADABLE_MS = 30 * 86_400_000;

export interface ResponsePorts {
  readonly sql: Sql;
  /** All of the writes, or none. */
  readonly transaction: (write: () => void) => void;
  readonly exchange: Exchange;
  /** Sets in the index of the owner's key what a background response takes. */
  readonly settleKept: (owner: string, settled: SettledResponse) => Promise<void>;
  /** In ms since the epoch. */
  readonly now: () => number;
  /** @returns a function that cancels the timer */
  readonly startTimer: (ms: number, onFire: () => void) => () => void;
  readonly setAlarm: (at: number) => Promise<void>;
  /** In ms since the epoch; null: none is set. */
  readonly getAlarm: () => Promise<number | null>;
  /** Deletes the alarm and everything that is stored. */
  readonly deleteAll: () => Promise<void>;
  /** Ends this instance of the object. The next one finds what is stored. */
  readonly restart: (reason: string) => void;
  readonly waitUntil: (work: Promise<unknown>) => void;
  readonly log: Log;
}

interface StoredState {
  readonly row: ResponseRow;
  readonly events: EventLog;
  readonly readers: LogReaders;
}

/** A run in this instance of the object. */
class Run {
  readonly abort = new AbortController();
  /** Why the object has aborted it; null: it was cancelled. */
  abortError: ApiError | null = null;
  /** The record to write if the object ends before the run. */
  interrupted: ChargedRecord | null = null;
  /** The record of the exchange, which has ended. */
  record: ChargedRecord | null = null;
  /** Resolves when `record` is there. */
  readonly recorded = Promise.withResolvers<void>();
  /** The end is being stored: later events are ignored. */
  isEnding = false;
  /** Resolves when the end is stored. */
  readonly ended = Promise.withResolvers<void>();
}

export class DurableResponse {
  readonly #ports: ResponsePorts;
  readonly #tables: ResponseTables;
  #state: StoredState | null = null;
  /** What is stored, but was not written by this code or is damaged. It can be deleted. */
  #unreadable: UnreadableRow | null = null;
  /** Null: none, or its end is stored. */
  #run: Run | null = null;
  /** Resolves when the record of the run is written; null: there is none to write. */
  #recordWritten: PromiseWithResolvers<void> | null = null;
  #cancelFlush: (() => void) | null = null;
  /** The size of the conversation up to its end, once it is known. */
  #conversationSize: Pick<Conversation, 'chars' | 'textBytes'> | null = null;

  /**
   * Ends a run that an earlier instance of the object has left unfinished, and writes a record that it has not written. Sets the alarm
   * if it is missing: it may have failed too often, or may not have been set.
   */
  constructor(ports: ResponsePorts) {
    this.#ports = ports;
    this.#tables = new ResponseTables(ports.sql);
    const stored = this.#tables.read();
    if (stored.kind === 'none') return;
    ports.waitUntil(this.#setMissingAlarm());
    if (stored.kind === 'unreadable') {
      this.#unreadable = stored.unreadable;
      ports.log({ event: 'response_unreadable', reason: stored.unreadable.reason });
      return;
    }
    const { row } = stored;
    const log = { last: this.#tables.last, isOver: row.endedAt !== null };
    this.#state = this.#stateOf(row, new EventLog(this.#tables, row.maxBytes, log));
    if (row.endedAt === null) this.#interrupt(this.#state);
    else if (row.record !== '') {
      this.#settleKept(this.#state);
      this.#writeRecord(decodeRecord(row.record));
    }
  }

  #stateOf(row: ResponseRow, events: EventLog): StoredState {
    const wait = (changed: Promise<void>) => this.#until(changed, HEARTBEAT_MS);
    return { row, events, readers: new LogReaders(events, wait, this.#ports.now) };
  }

  async #setMissingAlarm(): Promise<void> {
    const { getAlarm, setAlarm, now } = this.#ports;
    if ((await getAlarm()) !== null) return;
    const at = this.#nextAlarm(now());
    if (at !== null) await setAlarm(at);
  }

  /** When the alarm has work, in ms since the epoch; null: nothing is stored. */
  #nextAlarm(now: number): number | null {
    if (this.#unreadable !== null) {
      const { expiresAt } = this.#unreadable;
      return expiresAt ?? now + (expiresAt === null ? LOOK_AGAIN_MS : UNREADABLE_MS);
    }
    if (this.#state === null) return null;
    // As long as its record is not written, another instance must start if this one ends.
    if (this.#run !== null || this.#recordWritten !== null) return now + ALARM_MS;
    return this.#expiresAt ?? now + ALARM_MS;
  }

  /** Whether this is the object of a response. */
  get hasStored(): boolean {
    return this.#state !== null || this.#unreadable !== null;
  }

  /** Runs the request. Resolves when it is sent upstream, or is refused before. */
  async start(request: StartRequest): Promise<Started> {
    const { exchange, waitUntil } = this.#ports;
    const run = new Run();
    const sent = Promise.withResolvers<void>();
    const running = exchange.run(request, {
      signal: run.abort.signal,
      abortError: () => run.abortError,
      waitUntil,
      onSent: (record) => {
        run.interrupted = record;
        if (this.#run === run) this.#store(() => this.#tables.change({ record: JSON.stringify(record) }));
        sent.resolve();
      },
      onEnd: async (record) => {
        run.record = record;
        run.recorded.resolve();
        await run.ended.promise;
      },
      onRecordWritten: () => this.#onRecordWritten(),
    });
    const early = await Promise.race([running, sent.promise]);
    if (run.interrupted === null && early instanceof Response) {
      const { status, headers } = early;
      return { kind: 'refused', status, headers: [...headers], body: await early.text() };
    }
    const { owner, chain, earlierChars, earlierTextBytes, keptMs, maxBytes, input, requestId } = request;
    const queued = exchange.queued(request, responseIdOf(requestId));
    const record = JSON.stringify(run.interrupted ?? null);
    const row = {
      owner,
      isBackground: true,
      chain,
      earlierChars,
      earlierTextBytes,
      keptMs,
      maxBytes,
      queued,
      record,
      endedAt: null,
    };
    // Before the rows and without an await between, so that the runtime stores both or none.
    const alarm = this.#ports.setAlarm(this.#ports.now() + ALARM_MS);
    try {
      this.#ports.transaction(() => this.#tables.create(row, input));
    } catch (error) {
      run.abort.abort();
      // The record is written without a stored end.
      run.ended.resolve();
      throw error;
    }
    this.#state = this.#stateOf(row, new EventLog(this.#tables, maxBytes));
    this.#run = run;
    this.#recordWritten = Promise.withResolvers();
    waitUntil(this.#pump(running, run));
    await alarm;
    return { kind: 'started', response: queued };
  }

  /** Stores a response that a client has received. */
  async put({ input, events, ...keeping }: FinishedResponse): Promise<void> {
    // A repeated call: the first one may have failed after it stored the rows.
    if (this.#state !== null) return this.#setMissingAlarm();
    const now = this.#ports.now();
    const row = { ...keeping, isBackground: false, queued: '', record: '', endedAt: now };
    const log = new EventLog(this.#tables, row.maxBytes);
    // Before the rows and without an await between, so that the runtime stores both or none.
    const alarm = this.#ports.setAlarm(now + row.keptMs);
    this.#ports.transaction(() => {
      this.#tables.create(row, input);
      for (const frame of new FrameSplitter().add(events)) if (isEvent(frame)) log.append(frame);
    });
    this.#state = this.#stateOf(row, log);
    await alarm;
  }

  read(owner: string, maxChars = Number.POSITIVE_INFINITY): StoredResponse | null {
    const state = this.#owned(owner);
    if (state === null) return null;
    const response = this.#response(state);
    const { length: chars } = response;
    return { response: chars > maxChars ? null : response, chars, isOver: state.events.isOver };
  }

  input(owner: string, maxChars: number): StoredInput | null {
    if (this.#owned(owner) === null) return null;
    const input = this.#tables.input();
    const { length: chars } = input;
    return { input: chars > maxChars ? null : input, chars };
  }

  /** The events after a number, stored and future; null: there is no such response; `busy`: it has as many readers as it may have. */
  events(owner: string, startingAfter: number): ReadableStream<Uint8Array> | 'busy' | null {
    const state = this.#owned(owner);
    if (state === null) return null;
    return state.readers.open(startingAfter, HEARTBEAT) ?? 'busy';
  }

  /**
   * Why the response of this owner cannot be read; null: it can, or there is none.
   * @param owner null: the admin
   */
  unreadable(owner: string | null): string | null {
    const unreadable = this.#unreadable;
    return unreadable !== null && isOwnedBy(unreadable, owner) ? unreadable.reason : null;
  }

  async cancel(owner: string): Promise<Cancelled> {
    const state = this.#owned(owner);
    if (state === null) return { kind: 'none' };
    if (!state.row.isBackground) return { kind: 'foreground' };
    const run = this.#run;
    // A run whose exchange has ended is over, although its last event may not be read yet.
    if (run?.record === null) {
      run.abort.abort();
      // The SDKs throw on an event `response.cancelled` (openai-node 7.57.0, 2026-11-13).
      await this.#end(run, 'incomplete', { status: 'cancelled' });
    }
    await run?.ended.promise;
    return { kind: 'cancelled' };
  }

  /** @param owner null: the admin, who deletes only what is unreadable */
  async remove(owner: string | null): Promise<boolean> {
    const deleting = this.#deletion(owner);
    if (deleting === null) return false;
    // The client may disconnect before everything is deleted.
    this.#ports.waitUntil(deleting);
    await deleting;
    return true;
  }

  #deletion(owner: string | null): Promise<void> | null {
    if (this.#unreadable !== null && isOwnedBy(this.#unreadable, owner)) {
      this.#unreadable = null;
      return this.#ports.deleteAll();
    }
    return owner === null || this.#owned(owner) === null ? null : this.#remove(owner);
  }

  async #remove(owner: string): Promise<void> {
    await this.cancel(owner);
    // Another call may have deleted it meanwhile.
    if (this.#state === null) return;
    this.#close();
    // If this instance ends before the record is written, the next one needs what is stored.
    await this.#recordWritten?.promise;
    await this.#ports.deleteAll();
  }

  conversation(owner: string, maxChars: number): Conversation | null {
    const state = this.#owned(owner);
    if (state === null) return null;
    const { chain, earlierChars, earlierTextBytes = 0 } = state.row;
    const { isOver } = state.events;
    const hidden = { chain, input: '[]', output: '[]', isOver };
    // Many requests may ask for the size alone, so it is not computed from the items each time.
    const knownSize = this.#conversationSize;
    if (knownSize !== null && knownSize.chars > maxChars) return { ...hidden, ...knownSize };
    const items = this.#items(state);
    const chars = earlierChars + items.input.length + items.output.length;
    const textBytes = earlierTextBytes + textBytesOf([...readList(items.input), ...readList(items.output)]);
    const size = { chars, textBytes };
    if (isOver) this.#conversationSize = size;
    return chars > maxChars ? { ...hidden, ...size } : { chain, ...size, ...items, isOver };
  }

  items(owner: string, ids: readonly string[], maxChars: number): readonly FoundItem[] | null {
    const found = this.#found(owner, ids);
    if (found === null) return null;
    const chars = found.reduce((sum, [, json]) => sum + json.length, 0);
    return chars > maxChars ? found.map(([id]) => [id, null]) : found;
  }

  itemChars(owner: string, ids: readonly string[]): readonly (readonly [id: string, chars: number])[] | null {
    return this.#found(owner, ids)?.map(([id, json]) => [id, json.length] as const) ?? null;
  }

  #found(owner: string, ids: readonly string[]) {
    const state = this.#owned(owner);
    const [first = ''] = ids;
    return state === null ? null : findItems(this.#items(state), responseOfItem(first) ?? '', ids);
  }

  /** JSON lists. */
  #items(state: StoredState): { readonly input: string; readonly output: string } {
    const { output } = objectOf(parseJsonExactly(this.#response(state)));
    return { input: this.#tables.input(), output: JSON.stringify(output ?? []) };
  }

  /** Keeps a running object alive, and deletes what has expired. */
  async alarm(): Promise<void> {
    const now = this.#ports.now();
    // The alarm of a response without a readable expiry was set to its expiry.
    const isExpired = this.#unreadable !== null && this.#unreadable.expiresAt === undefined;
    const at = isExpired ? now : this.#nextAlarm(now);
    if (at === null) return;
    if (at > now) return this.#ports.setAlarm(at);
    this.#close();
    await this.#ports.deleteAll();
  }

  /** Null also where it has expired and its alarm is late. */
  #owned(owner: string): StoredState | null {
    if (this.#state?.row.owner !== owner) return null;
    const expiresAt = this.#expiresAt;
    return expiresAt !== null && expiresAt <= this.#ports.now() ? null : this.#state;
  }

  /** In ms since the epoch; null: it runs. */
  get #expiresAt(): number | null {
    const { endedAt = null, keptMs = 0 } = this.#tables.row ?? {};
    return endedAt === null ? null : endedAt + keptMs;
  }

  /** From now on there is no response. */
  #close(): void {
    this.#state?.events.close();
    this.#state = null;
    this.#unreadable = null;
  }

  /** Moves the events of the run into the log. Never rejects. */
  async #pump(running: Promise<Response>, run: Run): Promise<void> {
    try {
      const response = await running;
      if (response.ok && response.body !== null) await this.#read(response.body, run);
      else await this.#fail(run, await errorOf(response));
      // A run that has ended in another way is already ending.
      await this.#fail(run, INTERRUPTED);
    } catch (error) {
      // The stream of an aborted run may break.
      const request_id = run.interrupted?.request_id;
      if (!run.isEnding) this.#ports.log({ event: 'response_run_failed', request_id, reason: String(error) });
      run.abort.abort();
      await this.#fail(run, INTERRUPTED);
    }
  }

  async #read(body: ReadableStream<Uint8Array>, run: Run): Promise<void> {
    const splitter = new FrameSplitter();
    for await (const chunk of body) {
      for (const frame of splitter.add(chunk)) if (isEvent(frame)) this.#add(frame, run);
      // The exchange ends when its stream is read to the end, so the loop goes on after the run's terminal event.
    }
  }

  #add(frame: Frame, run: Run): void {
    const state = this.#state;
    if (state === null || run.isEnding) return;
    const { events, row } = state;
    if (!events.hasRoomFor(frame)) {
      const message = `The response has more than ${row.maxBytes} bytes of events (RESPONSE_BYTES): request a shorter output`;
      run.abortError = apiError('upstream_event_too_large', message);
      run.abort.abort();
      this.#ports.waitUntil(this.#fail(run, { code: 'server_error', message }));
      return;
    }
    if (isTerminal(frame)) {
      this.#ports.waitUntil(this.#conclude(run, () => events.append(frame)));
      return;
    }
    this.#store(() => events.append(frame));
    this.#cancelFlush ??= this.#ports.startTimer(FLUSH_MS, () => {
      this.#cancelFlush = null;
      this.#store(() => events.flush());
    });
  }

  #fail(run: Run, error: RunError): Promise<void> {
    return this.#end(run, 'failed', { status: 'failed', error: { ...error } });
  }

  /** Ends a run that has no terminal event. */
  #end(run: Run, type: 'failed' | 'incomplete', fields: JsonObject): Promise<void> {
    return this.#conclude(run, (state) => this.#appendEnd(state, type, fields, 0));
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

  /**
   * Stores the terminal event together with the record, once: another instance of the object finds both or none. The record is written
   * afterwards.
   */
  async #conclude(run: Run, appendEnd: (state: StoredState) => void): Promise<void> {
    if (run.isEnding) return run.ended.promise;
    run.isEnding = true;
    await this.#until(run.recorded.promise, RECORD_MS);
    const state = this.#state;
    if (state === null) return run.ended.resolve();
    this.#cancelFlush?.();
    this.#cancelFlush = null;
    this.#store(() => {
      appendEnd(state);
      const record = JSON.stringify(run.record ?? run.interrupted);
      const { keptMs } = state.row;
      const kept = hasOnlyFailed(state.events) ? Math.min(keptMs, FAILED_MS) : keptMs;
      this.#tables.change({ endedAt: this.#ports.now(), keptMs: kept, record });
    });
    this.#settleKept(state);
    this.#run = null;
    run.ended.resolve();
  }

  /** The upstream call of an unfinished run has ended with the instance of the object that made it. */
  #interrupt(state: StoredState): void {
    const { exchange, now, log } = this.#ports;
    const before = decodeRecord(state.row.record);
    const record = before === null ? null : exchange.interrupted(before);
    this.#ports.transaction(() => {
      this.#appendEnd(state, 'failed', { status: 'failed', error: { ...INTERRUPTED } }, MAX_UNSTORED_EVENTS);
      this.#tables.change({ endedAt: now(), record: record === null ? '' : JSON.stringify(record) });
    });
    this.#settleKept(state);
    log({ event: 'response_interrupted', request_id: record?.request_id });
    this.#writeRecord(record);
  }

  /** Sets the size and the expiry of a run that has ended. Until then it is counted with an assumed size. */
  #settleKept({ row }: StoredState): void {
    const { settleKept, waitUntil, log } = this.#ports;
    const id = readText(objectOf(parseJson(row.queued)).id);
    const expiresAt = this.#expiresAt;
    if (id === undefined || expiresAt === null) return;
    const settling = settleKept(row.owner, { id, bytes: this.#tables.bytes, expiresAt });
    waitUntil(
      settling.catch((error: unknown) =>
        log({ event: 'response_not_settled', response_id: id, reason: String(error) }),
      ),
    );
  }

  #writeRecord(record: ChargedRecord | null): void {
    if (record === null) return;
    const { exchange, waitUntil } = this.#ports;
    this.#recordWritten = Promise.withResolvers();
    waitUntil(exchange.writeRecord(record, waitUntil).then(() => this.#onRecordWritten()));
  }

  #onRecordWritten(): void {
    this.#recordWritten?.resolve();
    this.#recordWritten = null;
    const state = this.#state;
    if (state === null) return;
    this.#store(() => this.#tables.change({ record: '' }));
    const { now, setAlarm, waitUntil } = this.#ports;
    waitUntil(setAlarm(this.#nextAlarm(now()) ?? now()));
  }

  /** Ends this instance if the storage fails, because what it holds would no longer be what is stored. */
  #store(write: () => void): void {
    try {
      this.#ports.transaction(write);
    } catch (error) {
      const request_id = this.#run?.interrupted?.request_id;
      this.#ports.log({ event: 'response_storage_failed', request_id, reason: String(error) });
      this.#ports.restart('The storage failed');
      throw error;
    }
  }

  /** The current response object: JSON text. */
  #response({ row, events }: StoredState): string {
    if (events.isOver) {
      const block = events.after(events.last - 1);
      const last = block === null ? undefined : splitFrames(block.bytes).at(-1);
      return last === undefined ? row.queued : responseJson(last);
    }
    const first = events.after(-1);
    for (const frame of first === null ? [] : splitFrames(first.bytes)) {
      const { response } = readFrame(frame);
      if (isObject(response)) return JSON.stringify(response);
    }
    return row.queued;
  }

  /** @returns whether it has resolved within this time */
  #until(event: Promise<void>, ms: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const cancel = this.#ports.startTimer(ms, () => resolve(false));
    void event.then(() => {
      cancel();
      resolve(true);
    });
    return promise;
  }
}

/** The admin may delete what no owner can read. */
function isOwnedBy(unreadable: UnreadableRow, owner: string | null): boolean {
  return owner === null || unreadable.owner === owner;
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

/** The complete items of a run without a terminal event. */
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

/** Whether a run failed before the model wrote anything, as one that every provider refuses. */
function hasOnlyFailed(events: EventLog): boolean {
  const types: string[] = [];
  for (let block = events.after(-1); block !== null; block = events.after(block.last)) {
    for (const { type } of new FrameSplitter().add(block.bytes)) {
      if (!BEFORE_OUTPUT.includes(type)) return false;
      types.push(type);
    }
  }
  return types.at(-1) === 'failed';
}

/** The events of a response without output. */
const BEFORE_OUTPUT = ['queued', 'created', 'in_progress', 'error', 'failed'];

function responseJson(frame: Uint8Array): string {
  return JSON.stringify(readFrame(frame).response);
}

/** The usage record that the object itself has stored. */
function decodeRecord(json: string): ChargedRecord | null {
  const record = parseJson(json);
  return isObject(record) ? (record as unknown as ChargedRecord) : null; // decode
}
