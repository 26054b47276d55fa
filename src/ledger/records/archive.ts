/** The archived records of one key: pieces of days in an R2 bucket, as NDJSON. The bucket itself is the list of the pieces. */
import { completeRecord, type UsageRecord } from '../../metering/record.ts';
import { DAY_MS, firstIdAt, idAfter, idTime, isoDay } from '../../metering/time.ts';
import { isObject, parseJson } from '../../shared/json.ts';

/** The part of an R2 bucket that is used. */
export type ArchiveBucket = Pick<R2Bucket, 'get' | 'put' | 'list' | 'delete'>;

/** Calls back after so many ms. @returns cancels it */
export type StartTimer = (ms: number, onFire: () => void) => () => void;

/** A call to R2 that takes longer counts as failed. */
const CALL_TIMEOUT_MS = 10_000;
/** R2 lists and deletes at most so many objects at once. */
const MAX_LISTED = 1000;
/** Pieces of one day that are listed: 80 GB of records. */
const MAX_PIECES_A_DAY = 20_000;
/** Weir writes pieces of at most half of it. */
const MAX_READ_BYTES = 32_000_000;
/** Pieces that one part of a reading has, besides those that overlap them. */
const MAX_PIECES_READ = 3;
/** Days that one part of a reading lists. */
const MAX_DAYS_READ = 20;

/** The archive does not do what it has to, for a reason that the message names. */
export class ArchiveProblem extends Error {
  override readonly name = 'ArchiveProblem';
}

/** The reason why the archive failed, also of an error that has crossed RPC; null: another error. */
export function archiveProblem(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const at = error.message.indexOf(PROBLEM);
  return at < 0 ? null : error.message.slice(at);
}

const PROBLEM = 'The archive (WEIR_ARCHIVE)';

export function newProblem(what: string): ArchiveProblem {
  return new ArchiveProblem(`${PROBLEM} ${what}`);
}

/** An object of the bucket. */
export interface Piece {
  readonly name: string;
  /** All ids of its records are from the first to the last, both inclusive. Pieces may overlap; no record is in two. */
  readonly first: string;
  readonly last: string;
  readonly bytes: number;
}

interface ArchivedRecord {
  readonly record: UsageRecord;
  /** As the object had it. */
  readonly line: string;
}

interface ReadPiece {
  /** In the order of their ids. */
  readonly records: readonly ArchivedRecord[];
  readonly etag: string;
}

/** A part of a reading. */
export interface ArchivedPart {
  readonly records: readonly UsageRecord[];
  /** Null: this was the last part. */
  readonly next: string | null;
}

export class Archive {
  readonly #bucket: ArchiveBucket;
  readonly #prefix: string;
  readonly #startTimer: StartTimer;

  constructor(bucket: ArchiveBucket, keyId: string, startTimer: StartTimer) {
    this.#bucket = bucket;
    this.#prefix = `records/${keyId}/`;
    this.#startTimer = startTimer;
  }

  /** The days of which there are pieces, in order, each as the ms of its start. */
  async days(): Promise<readonly number[]> {
    const days: number[] = [];
    for (let cursor: string | undefined; ; ) {
      const listed = await this.#call(
        this.#bucket.list({
          prefix: this.#prefix,
          delimiter: '/',
          limit: MAX_LISTED,
          ...(cursor && { cursor }),
        }),
      );
      for (const prefix of listed.delimitedPrefixes) {
        const day = Date.parse(prefix.slice(this.#prefix.length, -1));
        if (!Number.isNaN(day)) days.push(day);
      }
      if (!listed.truncated) return days.sort((a, b) => a - b);
      cursor = listed.cursor;
    }
  }

  /**
   * The pieces of one day, in the order of their last ids.
   * @param fromId only those that may have this id or later ones
   */
  async piecesOf(day: number, fromId = ''): Promise<readonly Piece[]> {
    const prefix = this.#dayPrefix(day);
    const pieces: Piece[] = [];
    for (let cursor: string | undefined; pieces.length < MAX_PIECES_A_DAY; ) {
      // A piece that ends with the id itself has a longer name than the id.
      const from = cursor === undefined ? { startAfter: prefix + fromId } : { cursor };
      const listed = await this.#call(this.#bucket.list({ prefix, limit: MAX_LISTED, ...from }));
      for (const { key, size } of listed.objects) {
        const [, last, first] = NAME.exec(key.slice(prefix.length)) ?? [];
        if (last !== undefined && first !== undefined) pieces.push({ name: key, first, last, bytes: size });
      }
      if (!listed.truncated) return pieces;
      cursor = listed.cursor;
    }
    throw newProblem(`has more than ${MAX_PIECES_A_DAY} pieces of one day`);
  }

  /** What the piece has; null: it is deleted meanwhile. */
  async read({ name, bytes }: Piece): Promise<ReadPiece | null> {
    if (bytes > MAX_READ_BYTES) throw newProblem(`has a piece of ${bytes} bytes: ${name}`);
    const object = await this.#call(this.#bucket.get(name));
    if (object === null) return null;
    const text = await this.#call(object.text());
    const records = text.split('\n').flatMap((line) => (line === '' ? [] : decodeLine(line, name)));
    records.sort((a, b) => (a.record.request_id < b.record.request_id ? -1 : 1));
    return { records, etag: object.etag };
  }

  /**
   * Writes a piece with these lines.
   * @param etag of the piece that it replaces; null: there must be none
   */
  async write(
    { first, last }: Pick<Piece, 'first' | 'last'>,
    lines: readonly string[],
    etag: string | null,
  ): Promise<void> {
    const name = `${this.#dayPrefix(dayStart(first))}${last}_${first}.ndjson`;
    // Two instances of an object may run for a moment, after a failure of its machine.
    const onlyIf = etag === null ? { etagDoesNotMatch: '*' } : { etagMatches: etag };
    const written = await this.#call(
      this.#bucket.put(name, `${lines.join('\n')}\n`, {
        onlyIf,
        httpMetadata: { contentType: 'application/x-ndjson' },
      }),
    );
    if (written === null) throw newProblem('was changed by another instance of the object: it tries again');
  }

  async remove(pieces: readonly Piece[]): Promise<void> {
    for (let at = 0; at < pieces.length; at += MAX_LISTED)
      await this.#call(this.#bucket.delete(pieces.slice(at, at + MAX_LISTED).map(({ name }) => name)));
  }

  async find(id: string): Promise<UsageRecord | null> {
    for (const piece of await this.piecesOf(dayStart(id), id)) {
      if (piece.first > id) continue;
      const found = (await this.read(piece))?.records.find(({ record }) => record.request_id === id);
      if (found !== undefined) return found.record;
    }
    return null;
  }

  /**
   * The latest records of a range of ids, as far as one part reads: all wanted ones from `next` on, and some from before it.
   * @param limit the part ends once it has so many
   */
  async latest(
    fromId: string,
    beforeId: string,
    isWanted: (record: UsageRecord) => boolean,
    limit: number,
  ): Promise<ArchivedPart> {
    const found: UsageRecord[] = [];
    let read = 0;
    const days = (await this.days()).filter((day) => isOfRange(day, fromId, beforeId)).reverse();
    for (const [nth, day] of days.entries()) {
      if (nth === MAX_DAYS_READ) return { records: found, next: firstIdAt(day + DAY_MS) };
      const pieces = await this.piecesOf(day, fromId);
      for (const piece of pieces.filter(({ first }) => first < beforeId).reverse()) {
        // Those at the border are always read, so that the part is not the same as the one before.
        if (piece.last < beforeId) {
          const isFull = found.filter(({ request_id }) => request_id > piece.last).length >= limit;
          if (isFull || read === MAX_PIECES_READ) return { records: found, next: idAfter(piece.last) };
          read++;
        }
        for (const { record } of (await this.read(piece))?.records ?? []) {
          const { request_id } = record;
          if (request_id >= fromId && request_id < beforeId && isWanted(record)) found.push(record);
        }
      }
    }
    return { records: found, next: null };
  }

  /** The pieces with records after an id, as far as one part reads: all records up to `next` are in them; null: all of the range. */
  async piecesAfter(
    id: string,
    beforeId: string,
  ): Promise<{ readonly pieces: readonly Piece[]; readonly next: string | null }> {
    const pieces: Piece[] = [];
    const days = (await this.days()).filter((day) => isOfRange(day, id, beforeId));
    for (const [nth, day] of days.entries()) {
      if (nth === MAX_DAYS_READ) return { pieces, next: idBefore(firstIdAt(day)) };
      const own = (await this.piecesOf(day, id)).filter((piece) => piece.last > id && piece.first < beforeId);
      for (const piece of own.sort((a, b) => (a.first < b.first ? -1 : 1))) {
        if (pieces.length >= MAX_PIECES_READ && piece.first > id)
          return { pieces, next: idBefore(piece.first) };
        pieces.push(piece);
      }
    }
    return { pieces, next: null };
  }

  #dayPrefix(day: number): string {
    return `${this.#prefix}${isoDay(day)}/`;
  }

  async #call<Value>(sent: Promise<Value>): Promise<Value> {
    const timeout = Promise.withResolvers<never>();
    const cancelTimer = this.#startTimer(CALL_TIMEOUT_MS, () =>
      timeout.reject(newProblem(`did not answer within ${CALL_TIMEOUT_MS} ms`)),
    );
    try {
      return await Promise.race([sent, timeout.promise]);
    } catch (error) {
      throw error instanceof ArchiveProblem ? error : newProblem(`cannot be reached: ${String(error)}`);
    } finally {
      cancelTimer();
    }
  }
}

/** `<last id>_<first id>.ndjson`: the list after an id begins with the piece that may have it. */
const NAME = /^([0-9a-f-]{36})_([0-9a-f-]{36})\.ndjson$/;

/** The start of the UTC day of an id, in ms since the epoch. */
export function dayStart(id: string): number {
  return Math.floor(idTime(id) / DAY_MS) * DAY_MS;
}

function isOfRange(day: number, fromId: string, beforeId: string): boolean {
  return firstIdAt(day + DAY_MS) > fromId && firstIdAt(day) < beforeId;
}

/** A text between all earlier ids and this one, which is no id. */
export function idBefore(id: string): string {
  const digit = Number.parseInt(id.slice(-1), 16);
  const start = id.slice(0, -1);
  return digit === 0 ? start : `${start}${(digit - 1).toString(16)}~`;
}

function decodeLine(line: string, name: string): ArchivedRecord {
  const value = parseJson(line);
  if (!isObject(value)) throw newProblem(`has a line that is no record, in ${name}`);
  return { line, record: completeRecord(value) as unknown as UsageRecord }; // decode
}
