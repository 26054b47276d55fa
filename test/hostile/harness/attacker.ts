/** The attacker's process: the hostile upstream and clients. It is separate so that it can't delay the timers of the tests. */
import { serve } from '../../../bench/load/serve.ts';
import { decodeObject, textOf } from '../../../tools/simulator/json.ts';
import { chat } from '../../e2e/client.ts';
import { ANSWERS, REFUSED_HEAD } from '../attacks/answers.ts';
import { BODIES, NAMING } from '../attacks/bodies.ts';
import { plain } from '../attacks/frames.ts';
import { refusalOfText } from '../attacks/refusals.ts';
import { type Answer, sendAnswer } from './answer.ts';
import { judge } from './judge.ts';
import { type Command, type HostileRequest, type Outcome, type Report, WARM_REQUESTS } from './messages.ts';
import { type RawRequest, sendRequest } from './request.ts';

const LIMIT_MS = 45_000;
/** If many responses are equal, only the first ones are checked completely. */
const MAX_CHECKED_BYTES = 32 * 1024 * 1024;
const MAX_FAULTS = 10;
const START_BYTES = 400;
const SLOW_MS = 100;
const SLOW_BYTES = 2;
const CHAT = '/v1/chat/completions';
/** Matches Gemini's paths and those of Converse. */
const MODEL_IN_PATH = /\/models?\/([^:/]+)(?::|\/converse)/;

const answers = new Map<string, Answer>();
let requestCount = 0;
let bytesUp = 0;
let loaded: { readonly port: number; readonly asks: readonly (readonly [HostileRequest, RawRequest])[] } = {
  port: 0,
  asks: [],
};

function answerOf(name: string): Answer {
  const known = answers.get(name);
  if (known !== undefined) return known;
  const make = ANSWERS[name];
  if (make === undefined) throw new Error(`Unknown response ${name}`);
  const made = make();
  answers.set(name, made);
  return made;
}

function startUpstream(): Promise<number> {
  return serve(({ path, body, socket }) => {
    requestCount++;
    const named = MODEL_IN_PATH.exec(path)?.[1] ?? textOf(decodeObject(body)?.model);
    const name = /\/models(?:\?|$)/.test(path) ? 'models' : named;
    const answer = name === NAMING ? plain([refusalOfText(body)], { head: REFUSED_HEAD }) : answerOf(name);
    for (const piece of answer.pieces) bytesUp += piece.length;
    void sendAnswer(socket, answer);
  });
}

function askOf(hostileRequest: HostileRequest): RawRequest {
  const { stream, more = '{}', path = CHAT, send = 'whole', provider = 'openai' } = hostileRequest;
  if (path !== CHAT && hostileRequest.body === undefined) {
    return { head: `GET ${path} HTTP/1.1\r\nHost: weir\r\n\r\n`, body: [], pauseMs: 0, limitMs: LIMIT_MS };
  }
  const members = { stream, ...decodeObject(more) };
  const body =
    hostileRequest.body === undefined
      ? [Buffer.from(JSON.stringify(chat(`${provider}/${hostileRequest.answer}`, members)))]
      : (BODIES[hostileRequest.body]?.() ?? []);
  const length = body.reduce((sum, piece) => sum + piece.length, 0);
  const head = `POST ${path} HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
  if (send === 'whole') return { head, body, pauseMs: 0, limitMs: LIMIT_MS };
  const bytes = Buffer.concat(body);
  if (send === 'stalled') {
    return { head, body: [bytes.subarray(0, length / 2)], pauseMs: 0, limitMs: LIMIT_MS };
  }
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < length; at += SLOW_BYTES) pieces.push(bytes.subarray(at, at + SLOW_BYTES));
  return { head, body: pieces, pauseMs: SLOW_MS, limitMs: LIMIT_MS };
}

function prepare(hostileRequests: readonly HostileRequest[], port: number): void {
  answers.clear();
  const asks = hostileRequests.flatMap((hostileRequest) => {
    if (hostileRequest.answer !== undefined) answerOf(hostileRequest.answer);
    const made = askOf(hostileRequest);
    return Array.from({ length: hostileRequest.times ?? 1 }, (): [HostileRequest, RawRequest] => [
      hostileRequest,
      made,
    ]);
  });
  answerOf('ok');
  loaded = { port, asks };
}

/** Sends all requests at once. Responses are judged at the end, so that judging takes no CPU time from the gateway. */
async function fire(): Promise<Report> {
  requestCount = 0;
  bytesUp = 0;
  const { port, asks } = loaded;
  const answered = await Promise.all(
    asks.map(async ([hostileRequest, made]) => ({ hostileRequest, answer: await sendRequest(port, made) })),
  );
  let checkedBytes = 0;
  const outcomes = answered.map(({ hostileRequest, answer }): Outcome => {
    const { status, end, ms, bytes, kept, headers } = answer;
    const requestId = headers.get('x-weir-request-id') ?? '';
    const isSentOn = headers.has('x-weir-provider');
    checkedBytes += kept.length;
    const isSample = checkedBytes === kept.length || checkedBytes <= MAX_CHECKED_BYTES;
    const judged = judge(answer, isSample, {
      shape: 'chat',
      provider: hostileRequest.provider ?? 'openai',
      usage: 'finish',
      vendorEvents: 'strip',
      errorFrames: 'data',
    });
    const name = hostileRequest.answer ?? hostileRequest.body ?? hostileRequest.path ?? '';
    const start = kept.subarray(0, START_BYTES).toString();
    return {
      requestId,
      isSentOn,
      hostileRequest: name,
      status,
      end,
      ms,
      bytes,
      ...judged,
      faults: judged.faults.slice(0, MAX_FAULTS),
      start,
    };
  });
  return { kind: 'fired', outcomes, requestCount, bytesUp };
}

async function warm(port: number): Promise<void> {
  for (let i = 0; i < WARM_REQUESTS; i++) {
    await sendRequest(port, askOf({ answer: i % 2 === 0 ? 'ok' : 'ok-plain', stream: i % 2 === 0 }));
  }
}

async function run(command: Command): Promise<Report> {
  if (command.kind === 'fire') return fire();
  if (command.kind === 'prepare') prepare(command.hostileRequests, command.port);
  else await warm(command.port);
  return { kind: 'prepared' };
}

function report(message: Report): void {
  process.send?.(message);
}

process.on('message', (command: Command) => {
  run(command).then(report, (error: unknown) => {
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
    report({ kind: 'broken', reason });
  });
});
process.on('disconnect', () => process.exit());
report({ kind: 'started', upstreamPort: await startUpstream() });
