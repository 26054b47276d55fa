/** Runs one stream: collects its frames and output parts, and records how it ended. */
import { type Frame, readFrames } from '../../api/frames.ts';
import { type Problem, problemOf } from '../../api/problem.ts';
import type { Choice, Protocol, Usage } from './protocols.ts';

export type PartKind = 'reasoning' | 'text' | 'refusal' | 'tool' | 'error';
export type FrameKind = PartKind | 'usage' | 'done' | 'other';

/** A run of output of one kind. */
export interface Part {
  readonly kind: PartKind;
  /** A later delta with the same id continues the part. */
  readonly id: string;
  /** A tool's name or an error's code. */
  readonly title: string;
  text: string;
}

export interface SeenFrame extends Omit<Frame, 'json'> {
  readonly kind: FrameKind;
  /** Its text is JSON, which is parsed again when it is opened. */
  readonly isJson: boolean;
}

/** How many frames are kept, and how many bytes they have together. Later ones are only counted. */
const MAX_FRAMES = 5000;
const MAX_FRAMES_BYTES = 8 * 1024 * 1024;
/** How many parts of the output are kept, and how many characters they have together. */
const MAX_PARTS = 1000;
const MAX_TEXT = 1_000_000;

/** Sends a request and returns its response, which streams. */
interface Streams {
  stream(path: string, body: unknown, signal: AbortSignal): Promise<Response>;
}

export class Run {
  readonly model: string;
  readonly frames: SeenFrame[] = [];
  readonly parts: Part[] = [];
  phase: 'waiting' | 'streaming' | 'done' | 'stopped' | 'failed' = 'waiting';
  frameCount = 0;
  bytes = 0;
  /** The first output, in ms since the request was sent; null before it. */
  firstAt: number | null = null;
  lastAt = 0;
  endedAt: number | null = null;
  usage: Usage | null = null;
  finish: string | null = null;
  requestId: string | null = null;
  /** A provider was called: a request that is refused before has no record. */
  hasRecord = false;
  problem: Problem | null = null;
  /** Output or frames were left out, because the page keeps no more. */
  isCut = false;
  #keptBytes = 0;
  #keptText = 0;
  readonly #protocol: Protocol;
  readonly #aborting = new AbortController();
  readonly #onChange: () => void;
  #isDone = false;

  constructor(model: string, protocol: Protocol, onChange: () => void) {
    this.model = model;
    this.#protocol = protocol;
    this.#onChange = onChange;
  }

  get isRunning(): boolean {
    return this.endedAt === null;
  }

  /** Aborts the request. The deployment then cancels its upstream. */
  stop(): void {
    this.#aborting.abort();
  }

  async start(api: Streams, prompt: string, fields: Readonly<Record<string, unknown>>): Promise<void> {
    const start = performance.now();
    const now = () => performance.now() - start;
    try {
      const { path, body } = this.#protocol.request(this.model, prompt, fields);
      const response = await api.stream(path, body, this.#aborting.signal);
      this.requestId = response.headers.get('x-weir-request-id');
      this.hasRecord = response.headers.has('x-weir-provider');
      if (!response.ok || response.body === null) {
        this.#fail(problemOf(response.status, await response.text()));
      } else {
        this.phase = 'streaming';
        await readFrames(response.body, now, (frame) => this.#take(frame));
        if (this.phase === 'streaming') this.phase = 'done';
        if (!this.#isDone)
          this.#error(`no ${this.#protocol.last}`, 'The stream ended without its last frame.');
      }
    } catch {
      if (this.#aborting.signal.aborted) this.phase = 'stopped';
      else if (this.phase === 'waiting') this.#fail({ kind: 'offline' });
      else
        this.#error(
          'connection lost',
          'The connection to the deployment was lost in the middle of the stream.',
        );
    }
    this.endedAt = now();
    this.#onChange();
  }

  #fail(problem: Problem): void {
    this.problem = problem;
    this.phase = 'failed';
  }

  #error(title: string, text: string): void {
    this.phase = 'failed';
    const before = this.parts.at(-1);
    // The first error is always kept. Responses says it twice: as an event, and in the response.
    if (before?.kind === 'error' && (before.text === text || this.parts.length >= MAX_PARTS)) return;
    this.parts.push({ kind: 'error', id: `error-${this.parts.length}`, title, text: this.#room(text) });
  }

  /** The part of a text that is kept. */
  #room(text: string): string {
    const kept = text.slice(0, MAX_TEXT - this.#keptText);
    this.#keptText += kept.length;
    if (kept.length < text.length) this.isCut = true;
    return kept;
  }

  #take(frame: Frame): void {
    const kind = this.#read(frame);
    this.frameCount++;
    this.bytes += frame.bytes;
    this.lastAt = frame.at;
    const isOutput = kind === 'text' || kind === 'reasoning' || kind === 'tool' || kind === 'refusal';
    if (isOutput) this.firstAt ??= frame.at;
    const { at, bytes, text, json } = frame;
    if (this.frames.length < MAX_FRAMES && this.#keptBytes + bytes <= MAX_FRAMES_BYTES) {
      this.#keptBytes += bytes;
      this.frames.push({ at, bytes, text, kind, isJson: json !== undefined });
    } else this.isCut = true;
    this.#onChange();
  }

  #read({ text, json }: Frame): FrameKind {
    if (text === this.#protocol.last) {
      this.#isDone = true;
      return 'done';
    }
    if (typeof json !== 'object' || json === null) return 'other';
    const chunk = this.#protocol.read(json);
    if (chunk.isLast) this.#isDone = true;
    if (chunk.error !== undefined) {
      this.#error(chunk.error.code ?? 'error', chunk.error.message ?? '');
      return 'error';
    }
    let kind: FrameKind = chunk.isLast ? 'done' : 'other';
    for (const choice of chunk.choices ?? []) kind = this.#readChoice(choice) ?? kind;
    if (chunk.usage) {
      const known = Object.entries(chunk.usage).filter(([, value]) => value !== undefined);
      this.usage = { ...this.usage, ...Object.fromEntries(known) };
      if (kind === 'other') kind = 'usage';
    }
    return kind;
  }

  #readChoice({ index = 0, delta = {}, finish_reason }: Choice): PartKind | null {
    if (finish_reason) this.finish = finish_reason;
    let kind: PartKind | null = null;
    const { reasoning_content, content, refusal, tool_calls = [] } = delta;
    const add = (of: PartKind, id: string, text: string, title: string) => {
      kind = of;
      const last = this.parts.findLast((part) => part.id === id);
      const continues = last !== undefined && (of === 'tool' || last === this.parts.at(-1));
      if (continues) last.text += this.#room(text);
      else if (this.parts.length < MAX_PARTS)
        this.parts.push({ kind: of, id, title, text: this.#room(text) });
      else this.isCut = true;
    };
    const of = index === 0 ? '' : ` ${index + 1}`;
    if (reasoning_content) add('reasoning', `reasoning${index}`, reasoning_content, `Reasoning${of}`);
    if (content) add('text', `text${index}`, content, `Text${of}`);
    if (refusal) add('refusal', `refusal${index}`, refusal, `Refusal${of}`);
    for (const { index: call = 0, function: { name = '', arguments: text = '' } = {} } of tool_calls)
      add('tool', `tool${index}/${call}`, text, name);
    return kind;
  }
}
