/** Sends streams at a model's pace: one frame at a time. Each frame's text contains its number and the time of writing. */
import type { Socket } from 'node:net';
import { converseEnd, converseStart, converseText } from '../converse-stream.ts';
import { PACED_STREAMS, type PacedStream, pacedEnd, pacedEvent, pacedStart } from '../streams.ts';
import { chunkOf, inChunks, LAST_CHUNK, STREAM_HEAD } from './http1.ts';

interface Playing {
  readonly wire: Wire;
  readonly socket: Socket;
  readonly model: string;
  readonly startedAt: number;
  readonly periodMs: number;
  frames: number;
}

/** `<#number:microseconds#>`, always of this length. */
const HOLE = `<#${'0'.repeat(7)}:${'0'.repeat(13)}#>`;
export const MARK = /<#(\d{7}):(\d{13})#>/g;

/** The bytes of a stream, a character each. */
interface Wire {
  readonly opening: string;
  readonly frame: (mark: string) => string;
  readonly ending: string;
}

const wires = new Map(PACED_STREAMS.map((stream) => [stream as string, wireOf(stream)]));

function wireOf(stream: PacedStream): Wire {
  // Each message has a checksum of its own.
  if (stream === 'converse')
    return {
      opening: STREAM_HEAD + chunkOfBytes(converseStart()),
      frame: (mark) => chunkOfBytes(converseText(mark)),
      ending: chunkOfBytes(converseEnd()) + LAST_CHUNK,
    };
  const event = chunkOf(pacedEvent(stream, HOLE));
  const before = event.slice(0, event.indexOf(HOLE));
  const after = event.slice(event.indexOf(HOLE) + HOLE.length);
  return {
    opening: STREAM_HEAD + chunkOf(pacedStart(stream)),
    frame: (mark) => before + mark + after,
    ending: chunkOf(pacedEnd(stream)) + LAST_CHUNK,
  };
}

function chunkOfBytes(bytes: Buffer): string {
  return inChunks(bytes, bytes.length).toString('latin1');
}

/** A stream's complete text with these marks. */
export function pacedText(stream: PacedStream, marks: readonly string[]): string {
  return pacedStart(stream) + marks.map((mark) => pacedEvent(stream, mark)).join('') + pacedEnd(stream);
}

/** What a row that passes bytes through sends of it, a character each. */
export function pacedBytes(stream: PacedStream, marks: readonly string[]): string {
  if (stream !== 'converse') return pacedText(stream, marks);
  const frames = marks.map((mark) => converseText(mark));
  return Buffer.concat([converseStart(), ...frames, converseEnd()]).toString('latin1');
}

const playing = new Set<Playing>();
/** All sockets of the current job, including those of ended streams. */
const sockets = new Set<Socket>();
const limits = { frames: Number.POSITIVE_INFINITY, isStopping: false };
/** The number of frames sent to each ended stream, by model. */
const sent = new Map<string, number>();

/** Called before a job: streams end after this number of frames, or when they are stopped. */
export function openPacer(frames = Number.POSITIVE_INFINITY): void {
  limits.frames = frames;
  limits.isStopping = false;
  sockets.clear();
  sent.clear();
}

/** Ends all open streams at their next turn. */
export function stopStreams(): void {
  limits.isStopping = true;
}

/** Drops data that was written but not yet read. */
export function dropStreams(): void {
  for (const socket of sockets) socket.destroy();
}

export function framesSent(model: string): number | undefined {
  return sent.get(model);
}

/** @param name the stream's name */
export function playPaced(socket: Socket, model: string, rate: number, name: string): void {
  const wire = wires.get(name);
  if (wire === undefined) throw new Error(`Unknown stream ${name}`);
  socket.write(wire.opening, 'latin1');
  sockets.add(socket);
  playing.add({ wire, socket, model, startedAt: performance.now(), periodMs: 1000 / rate, frames: 0 });
  if (playing.size === 1) turn();
}

/** Writes the due frames. A late turn writes each late frame separately. */
function turn(): void {
  const now = performance.now();
  for (const stream of playing) {
    while (!isOver(stream) && stream.startedAt + (stream.frames + 1) * stream.periodMs <= now) {
      const number = String(stream.frames++).padStart(7, '0');
      const moment = String(Math.round(performance.now() * 1000)).padStart(13, '0');
      stream.socket.write(stream.wire.frame(`<#${number}:${moment}#>`), 'latin1');
    }
    if (!isOver(stream)) continue;
    stream.socket.write(stream.wire.ending, 'latin1');
    sent.set(stream.model, stream.frames);
    playing.delete(stream);
  }
  if (playing.size > 0) setTimeout(turn, 1);
}

function isOver({ socket, frames }: Playing): boolean {
  return limits.isStopping || frames >= limits.frames || socket.destroyed;
}
