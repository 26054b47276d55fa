/** Runs normal streams, with a frame every 50 ms, during an attack, and measures the longest time without a frame. */
import { setTimeout } from 'node:timers/promises';
import { Connection } from '../../../bench/load/client.ts';
import { chunkOf, LAST_CHUNK, STREAM_HEAD } from '../../../bench/load/http1.ts';
import { serve } from '../../../bench/load/serve.ts';

const PACE_MS = 50;
/** After this many frames a stream ends and the next one starts. */
const FRAMES_A_STREAM = 20;
/** One turn of the event loop asks for this. */
const TURN_MS = 10;
/** Longer than a mark, so that none is missed if it is split between two reads. */
const CARRIED_CHARACTERS = 40;
const MARK = /<#(\d+)#>/g;
const END = 'data: [DONE]\n\n';

/** The wait for a frame and the gateway's CPU time during it, in ms. The difference is other work of the machine. */
export interface Gap {
  readonly waitedMs: number;
  readonly ranMs: number;
}

const NO_GAP: Gap = { waitedMs: 0, ranMs: 0 };

export interface Pacer {
  /** The longest gap since the last call. */
  takeGap(): Gap;
  /** The number of complete streams, and the problems of others. */
  readonly whole: number;
  readonly problems: readonly string[];
  stop(): Promise<void>;
}

/** When each frame was written, by its number. Upstream and client share this process. */
const written = new Map<number, number>();
let frames = 0;

function event(content: string, finish: string | null): string {
  const choice = { index: 0, delta: { content }, finish_reason: finish };
  return `data: ${JSON.stringify({ id: 'paced', choices: [choice] })}\n\n`;
}

/** @returns its port */
export function startPacedUpstream(): Promise<number> {
  return serve(({ socket }) => {
    socket.write(STREAM_HEAD);
    let sent = 0;
    let dueAt = performance.now();
    function turn(): void {
      const now = performance.now();
      if (socket.destroyed) return clearInterval(timer);
      for (; dueAt <= now && sent < FRAMES_A_STREAM; sent++, dueAt += PACE_MS) {
        written.set(++frames, now);
        socket.write(chunkOf(event(`<#${frames}#>`, null)));
      }
      if (sent < FRAMES_A_STREAM) return;
      clearInterval(timer);
      socket.write(chunkOf(event('', 'stop') + END) + LAST_CHUNK);
    }
    const timer = setInterval(turn, TURN_MS);
    turn();
  });
}

/**
 * @param port the gateway's, whose provider `paced` is the paced upstream
 * @param gatewayRanMs how long the gateway has run
 */
export function startPacer(port: number, gatewayRanMs: () => number): Pacer {
  const problems: string[] = [];
  let whole = 0;
  let gap = NO_GAP;
  let lastAt = performance.now();
  let ranAtLast = gatewayRanMs();
  let isStopped = false;
  let connection: Connection | undefined;

  /**
   * The wait for a frame starts at the last frame, or when the frame was due if that is later. For the first frame of a
   * stream it starts when it was written.
   */
  function note(number: number, now: number, isFirst: boolean): void {
    const writtenAt = written.get(number) ?? now;
    lengthen(now - Math.max(lastAt, isFirst ? writtenAt : writtenAt - PACE_MS));
    lastAt = now;
    written.delete(number);
  }

  function lengthen(waitedMs: number): void {
    const ran = gatewayRanMs();
    const ranMs = Math.min(ran - ranAtLast, waitedMs);
    if (ranMs > gap.ranMs) gap = { waitedMs, ranMs };
    ranAtLast = ran;
  }

  async function readOne(): Promise<void> {
    let carried = '';
    let marks = 0;
    const body = JSON.stringify({
      model: 'paced/paced',
      stream: true,
      messages: [{ role: 'user', content: 'x' }],
    });
    try {
      connection = await Connection.open(port);
      const status = await connection.request({ headers: {}, body }, (bytes) => {
        const now = performance.now();
        const text = carried + bytes.toString('latin1');
        let read = 0;
        for (const mark of text.matchAll(MARK)) {
          note(Number(mark[1]), now, marks === 0);
          marks++;
          read = mark.index + mark[0].length;
        }
        carried = text.slice(Math.max(read, text.length - CARRIED_CHARACTERS));
      });
      if (status === 200 && marks === FRAMES_A_STREAM && carried.endsWith(END)) whole++;
      else problems.push(`status ${status}, ${marks} frames, ends with ${JSON.stringify(carried)}`);
    } catch (error) {
      if (isStopped) return;
      problems.push(String(error));
      // A gateway that has exited refuses connections at once.
      await setTimeout(PACE_MS);
    } finally {
      connection?.close();
    }
  }

  const running = (async () => {
    while (!isStopped) await readOne();
  })();
  return {
    takeGap: () => {
      lengthen(performance.now() - lastAt);
      const longest = gap;
      gap = NO_GAP;
      return longest;
    },
    get whole() {
      return whole;
    },
    problems,
    stop: async () => {
      isStopped = true;
      connection?.close();
      await running;
    },
  };
}
