/** Reads a client's bytes as frames, and lists violations of F1 and F3. */
import { parseJsonExactly } from '../../../src/shared/json.ts';
import { isObject, type JsonObject, parseJson, textOf } from './json.ts';

/** `event`: the name on its event line, or `""`. */
export type Frame = { number: number } & (
  | { kind: 'heartbeat' | 'done' | 'broken' }
  | { kind: 'chunk' | 'vendor' | 'error'; value: JsonObject; event: string }
);

type Read = { frames: Frame[]; faults: string[] };

const LINE_FEED = 10;
const HEARTBEAT = ': heartbeat';
const DATA = 'data: ';

export function fault(rule: string, what: string, frame?: number): string {
  return `${rule}: ${what}${frame === undefined ? '' : ` (frame ${frame})`}`;
}

/** The stream of a client that disconnected may end anywhere, so an unfinished last frame is not a fault. */
export function readFrames(bytes: Uint8Array, clientLeft: boolean): Read {
  const end = endOfLastFrame(bytes);
  const faults: string[] = [];
  const blocks = decodeText(bytes.subarray(0, end), faults).split('\n\n');
  if (blocks.at(-1) === '') blocks.pop();
  if (end < bytes.length && !clientLeft) {
    faults.push(fault('F1', 'the stream does not end with two LFs'));
    blocks.push(decodeText(bytes.subarray(end), faults).replace(/\n$/, ''));
  }
  const frames = blocks.map((block, position) => readBlock(block, position + 1, faults));
  return { frames, faults };
}

function endOfLastFrame(bytes: Uint8Array): number {
  for (let end = bytes.length; end >= 2; end -= 1) {
    if (bytes[end - 1] === LINE_FEED && bytes[end - 2] === LINE_FEED) return end;
  }
  return 0;
}

function decodeText(bytes: Uint8Array, faults: string[]): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    faults.push(fault('F1', 'the bytes are not UTF-8'));
    return new TextDecoder('utf-8', { fatal: false, ignoreBOM: true }).decode(bytes);
  }
}

function readBlock(whole: string, number: number, faults: string[]): Frame {
  const block = whole.replace(/^\n+/, '');
  if (block !== whole) faults.push(fault('F1', 'more than two LFs between frames', number));
  const lines = block.split('\n');
  if (block === HEARTBEAT) return { number, kind: 'heartbeat' };
  if (lines.some((line) => line.startsWith(':'))) {
    return broken('F3', `the comment ${shown(block)}`, number, faults);
  }
  const event = lines.length === 2 ? /^event: ([^\r]+)$/.exec(lines[0] ?? '')?.[1] : undefined;
  const line = event === undefined ? block : lines[1];
  if (line === undefined || !/^data: [^\r\n]+$/.test(line)) {
    return broken('F1', `not one data line: ${shown(block)}`, number, faults);
  }
  const frame = classify(line.slice(DATA.length), event ?? '', number, faults);
  if (event !== undefined && frame.kind !== 'broken' && !mayHaveEvent(frame.kind, event)) {
    faults.push(fault('F1', `the event field ${shown(event)} on a frame of the kind ${frame.kind}`, number));
  }
  return frame;
}

/** Only errors (E3) and vendor events (V2) have an event line. */
function mayHaveEvent(kind: Frame['kind'], event: string): boolean {
  return kind === 'vendor' ? event.startsWith('x_') : kind === 'error' && event === 'error';
}

function classify(data: string, event: string, number: number, faults: string[]): Frame {
  if (data === '[DONE]') return { number, kind: 'done' };
  const value = parseJson(data);
  if (!isObject(value)) return broken('F1', `no JSON object: ${shown(data)}`, number, faults);
  if (isVendor(value, event)) return { number, kind: 'vendor', value, event };
  if (!isCompact(data)) faults.push(fault('F1', `JSON is not compact: ${shown(data)}`, number));
  const isError = 'error' in value && !('choices' in value);
  return { number, kind: isError ? 'error' : 'chunk', value, event };
}

/** An event without `type` is a vendor event by its event line, unless a client would take it for a chunk or an error. */
function isVendor(value: JsonObject, event: string): boolean {
  if ('choices' in value) return false;
  if (textOf(value.type).startsWith('x_')) return true;
  if ('error' in value) return false;
  return event.startsWith('x_') || !('object' in value);
}

/** Strings are normalized first, because a string may keep the upstream's escapes. */
function isCompact(text: string): boolean {
  const spelled = text.replace(/"(?:[^"\\]|\\.)*"/g, (string) => JSON.stringify(parseJson(string)));
  // An integer beyond 2^53 stays as the upstream wrote it (Q11).
  return spelled === JSON.stringify(parseJsonExactly(text));
}

function broken(rule: string, what: string, number: number, faults: string[]): Frame {
  faults.push(fault(rule, what, number));
  return { number, kind: 'broken' };
}

function shown(text: string): string {
  const limit = 60;
  return JSON.stringify(text.length > limit ? `${text.slice(0, limit)}…` : text);
}
