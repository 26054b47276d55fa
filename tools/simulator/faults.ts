/** Faults by name: each turns a valid response into a failure that occurs at real providers. */
import {
  body,
  drops,
  endless,
  events,
  firstHalf,
  flood,
  type Good,
  gzipped,
  LIMITS,
  pieces,
  queued,
  steps,
} from './fault-steps.ts';
import { refusalByName } from './refusals.ts';
import { JSON_HEAD, paced, type Reply, replyOf } from './reply.ts';
import { DONE, type Scene, type WireEvent } from './scene.ts';

type Fault = (good: Good) => Reply;

/** Faults of any response. */
const FAULTS: Readonly<Record<string, Fault>> = {
  hang: () => ({ head: undefined, steps: [{ stop: 'hang' }] }),
  'stall-head': (good) => steps(good, [{ stop: 'hang' }]),
  'stall-mid': (good) => steps(good, [...paced(firstHalf(good)), { stop: 'hang' }]),
  queue: (good) => steps(good, queued(good)),
  drip: (good) => steps(good, drops(good)),
  reset: (good) => steps(good, [...paced(firstHalf(good)), { stop: 'reset' }]),
  cut: (good) => events(good, firstHalf(good)),
  empty: (good) => steps(good, []),
  flood: (good) => steps(good, flood(good)),
  'endless-line': (good) =>
    steps(good, endless(good, good.streamed ? 'data: {"' : '', 'x', LIMITS.endlessBytes)),
  json: (good) => body(JSON_HEAD, good.object),
  html: () => body(headOf('text/html'), '<html><body>Please log in</body></html>'),
  'text-plain': (good) => ({ head: headOf('text/plain'), steps: paced(good.events) }),
  gzip: ({ head, ...good }) => {
    const headers = { ...head.headers, 'content-encoding': 'gzip' };
    return { head: { ...head, headers }, steps: gzipped({ ...good, head }) };
  },
  redirect: (good) => body({ status: 307, headers: { location: good.elsewhere } }, ''),
};

/** Faults of streams only. */
const STREAM_FAULTS: Readonly<Record<string, Fault>> = {
  'no-done': (good) =>
    events(
      good,
      good.events.filter((event) => event.kind !== 'done'),
    ),
  'no-finish': (good) =>
    events(
      good,
      // A message has its finish alone.
      good.events.filter(({ kind, bytes }) => kind !== 'finish' || bytes === undefined).map(unfinished),
    ),
  'after-finish': (good) =>
    events(
      good,
      good.events.flatMap((event) => repeated(good, event)),
    ),
  'double-done': (good) => events(good, [...good.events, ...pieces(good).slice(0, 1), DONE]),
  junk: (good) => midway(good, 'data: <p>upstream is confused</p>\n\n'),
  'half-json': (good) => midway(good, 'data: {"id":"half","choices":[{"index":0,"del\n\n'),
  // White space is valid JSON: only the event's size is a fault.
  'big-event': (good) =>
    midway(good, `data: {"choices":[],${' '.repeat(LIMITS.bigEventBytes)}"object":"x"}\n\n`),
  'endless-event': (good) => steps(good, endless(good, '', 'data: endless\n', LIMITS.endlessBytes)),
  'error-event': (good) => failed(good, `event: error\ndata: ${errorJson(good)}\n\n`),
  'error-data': (good) => failed(good, `data: ${errorJson(good)}\n\n`),
  'error-string': (good) => failed(good, `data: ${errorText(good)}\n\n`),
  'error-choices': (good) => events(good, [...firstHalf(good).slice(0, -1), ...withError(good), DONE]),
  'error-first': (good) => events(good, [{ kind: 'piece', text: `data: ${errorJson(good)}\n\n` }, DONE]),
};

/** The faults of streams that also apply to non-streaming responses. With any other, the response is valid. */
const WHOLE_FAULTS: Readonly<Record<string, Fault>> = {
  junk: (good) => body(good.head, '<p>upstream is confused</p>'),
  'half-json': (good) => events(good, firstHalf(good)),
  'big-event': (good) => body(good.head, ' '.repeat(LIMITS.bigEventBytes) + good.object),
  'endless-event': (good) => steps(good, endless(good, '', ' ', LIMITS.endlessBytes)),
  'error-event': (good) => body(good.head, errorJson(good)),
  'error-data': (good) => body(good.head, errorJson(good)),
  'error-string': (good) => body(good.head, errorText(good)),
  'error-choices': (good) => body(good.head, `${good.object.slice(0, -1)},${errorJson(good).slice(1)}`),
  'error-first': (good) => body(good.head, errorJson(good)),
};

/** All names but the `status-<code>-<form>` family. */
export const FAULT_NAMES: readonly string[] = [...Object.keys(FAULTS), ...Object.keys(STREAM_FAULTS)];

export function isFault(name: string, scene: Scene): boolean {
  return FAULT_NAMES.includes(name) || refusalByName(name, scene) !== undefined;
}

/** Undefined if the name is not a fault, or the fault doesn't apply to this response. */
export function faultyReply(name: string, good: Good): Reply | undefined {
  const refusal = refusalByName(name, good.scene);
  if (refusal) return replyOf(refusal);
  const own = good.streamed ? STREAM_FAULTS : WHOLE_FAULTS;
  return (FAULTS[name] ?? own[name])?.(good);
}

function headOf(contentType: string) {
  return { status: 200, headers: { 'content-type': contentType } };
}

function midway(good: Good, text: string): Reply {
  const first = firstHalf(good);
  return events(good, [...first, { kind: 'vendor', text }, ...good.events.slice(first.length)]);
}

/** Both providers that document failures within a stream send `[DONE]` after the error. */
function failed(good: Good, text: string): Reply {
  return events(good, [...firstHalf(good), { kind: 'piece', text }, DONE]);
}

function unfinished(event: WireEvent): WireEvent {
  return { ...event, text: event.text.replace(/("finish_reason": ?)"[a-z_]+"/, '$1null') };
}

function repeated(good: Good, event: WireEvent): WireEvent[] {
  return event.kind === 'finish' ? [event, ...pieces(good).slice(0, 1), event] : [event];
}

function errorJson({ scene }: Good): string {
  const error = scene.streamError;
  return JSON.stringify(error.object === 'error' ? error : { error });
}

function errorText({ scene }: Good): string {
  return JSON.stringify({ error: scene.streamError.message });
}

/** Adds an error beside the choices of the last piece of the first half (before its `}` and two line feeds). */
function withError(good: Good): WireEvent[] {
  const error = `,"error":${JSON.stringify(good.scene.streamError)}}\n\n`;
  return firstHalf(good)
    .slice(-1)
    .map((event) => ({ ...event, text: event.text.slice(0, -3) + error }));
}
