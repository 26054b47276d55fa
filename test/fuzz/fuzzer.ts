/** The fuzzer's process: a hostile upstream and several hostile clients. Seed and number determine each case. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serve } from '../../bench/load/serve.ts';
import { decodeObject, textOf } from '../../tools/simulator/json.ts';
import { type Answer, sendAnswer } from '../hostile/harness/answer.ts';
import { judge } from '../hostile/harness/judge.ts';
import { type RawResponse, sendRequest } from '../hostile/harness/request.ts';
import { makeAnswer } from './answers.ts';
import type { FuzzReport, Start } from './messages.ts';
import { randomOf } from './random.ts';
import { type Client, makeClient } from './requests.ts';

const CLIENTS = 16;
/** The number of reported faults of one kind. */
const MAX_FAULTS_KEPT = 3;
/** workerd's own status for a message that it rejects before the gateway receives it. */
const BAD_REQUEST = 400;
const INTERNAL = 500;

/** Faults of a response that no gateway can repair: missing or invalid values, and data after the last finish (U2, F4). */
const UNMENDABLE: readonly RegExp[] = [
  /^C2: created is \d+, no plausible second/,
  /^C7: name is ""/,
  /^C9: (logprob is not a number|bytes is neither null nor bytes)/,
];
const AFTER_THE_LAST_FINISH: readonly RegExp[] = [
  /^U2: usage on a stream that failed/,
  /^U2: usage before the last finish/,
];

let seed = 0;
const requested = new Map<string, number>();
/** Whether the upstream request was for a stream, by the case's number. The response depends on it. */
const streamed = new Map<number, boolean>();
const ends = new Map<string, number>();
const faults = new Map<string, number>();

function clientOf(number: number): Client {
  return makeClient(randomOf(2 * seed, number), number);
}

function answerOf(number: number, isStreamed: boolean): Answer {
  return makeAnswer(randomOf(2 * seed + 1, number), isStreamed);
}

function startUpstream(): Promise<number> {
  return serve(({ body, socket }) => {
    const request = decodeObject(body) ?? {};
    const model = textOf(request.model) || textOf(request.agent_id);
    const number = Number(/f(\d+)/.exec(model)?.[1] ?? 0);
    const isStreamed = request.stream === true;
    if (model !== '') {
      requested.set(model, (requested.get(model) ?? 0) + 1);
      streamed.set(number, isStreamed);
    }
    sendAnswer(socket, answerOf(number, isStreamed)).catch(() => socket.destroy());
  });
}

function faultsOf(
  { isCompletion, mayBreak, expectation, ask: { head } }: Client,
  answered: RawResponse,
): readonly string[] {
  const { status, end, kept } = answered;
  const start = kept.subarray(0, 400).toString();
  if (status === INTERNAL) return [`an internal error for ${head.split('\r\n')[0]?.slice(0, 60)}: ${start}`];
  if (end === 'late') return [`no response within ${Math.round(answered.ms)} ms`];
  if (end === 'left' && (status !== 200 || !isCompletion)) return [];
  if (!isCompletion)
    return end === 'whole' || mayBreak ? [] : [`the response to ${head.slice(0, 60)} is ${end}`];
  if (status === BAD_REQUEST && !start.startsWith('{')) return [];
  const allowed = expectation.usage === 'finish' ? [...UNMENDABLE, ...AFTER_THE_LAST_FINISH] : UNMENDABLE;
  const { faults: broken } = judge(answered, true, expectation);
  return broken.filter((fault) => !allowed.some((pattern) => pattern.test(fault)));
}

async function runCase(number: number): Promise<void> {
  const client = clientOf(number);
  const answered = await sendRequest(port, client.ask);
  const name = `${answered.end} ${answered.status}`;
  ends.set(name, (ends.get(name) ?? 0) + 1);
  for (const fault of faultsOf(client, answered).slice(0, 3)) reportFault(number, fault, client, answered);
}

function reportFault(number: number, fault: string, { ask: request }: Client, answered: RawResponse): void {
  const kind = `${fault.split(' ').slice(0, 5).join(' ')}`.replace(/\d+/g, '');
  const count = (faults.get(kind) ?? 0) + 1;
  faults.set(kind, count);
  if (count > MAX_FAULTS_KEPT) return;
  const file = join(mkdtempSync(join(tmpdir(), 'weir-fuzz-')), `case-${seed}-${number}.json`);
  const isStreamed = streamed.get(number);
  const answer = isStreamed === undefined ? null : answerOf(number, isStreamed);
  const base64 = (pieces: readonly Uint8Array[]) =>
    pieces.map((piece) => Buffer.from(piece).toString('base64'));
  const shown = {
    fault,
    request: {
      ...request,
      body: base64(request.body),
      text: Buffer.concat(request.body).toString().slice(0, 2000),
    },
    answer: answer && {
      ...answer,
      pieces: base64(answer.pieces),
      text: Buffer.concat(answer.pieces).toString().slice(0, 4000),
    },
    answered: {
      ...answered,
      headers: [...answered.headers],
      kept: answered.kept.toString().slice(0, 20_000),
    },
  };
  writeFileSync(file, JSON.stringify(shown, null, 1));
  report({ kind: 'fault', number, fault, file });
}

let port = 0;

async function run(start: Start): Promise<void> {
  ({ port, seed } = start);
  const until = performance.now() + start.seconds * 1000;
  let next = 1;
  async function oneByOne(): Promise<void> {
    while (performance.now() < until) await runCase(next++);
  }
  if (start.only === null) await Promise.all(Array.from({ length: CLIENTS }, oneByOne));
  else await runCase(start.only);
  report({ kind: 'done', requests: next - 1, asked: [...requested], ends: Object.fromEntries(ends) });
}

function report(message: FuzzReport): void {
  process.send?.(message);
}

process.on('message', (start: Start) => void run(start));
process.on('disconnect', () => process.exit());
report({ kind: 'started', upstreamPort: await startUpstream() });
