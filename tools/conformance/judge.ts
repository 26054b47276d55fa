/** Judges a play: compares what the client got with what the case expects, and names each fault. */
import type { Case, Client, ExpectedCall, ExpectedUsage } from './case.ts';
import { check } from './contract/check.ts';
import { checkMessages } from './contract/check-messages.ts';
import { checkResponses } from './contract/check-responses.ts';
import { isObject, objectOf, parseJson } from './contract/json.ts';
import type { Gateway, GatewayRecord, Play } from './play.ts';
import type { Call, Reading, UsageReading } from './reading.ts';

/** The kinds of faults, by which a report names what a gateway does. */
export const FAULTS = {
  dropped: 'output is missing',
  doubled: 'output is there more than once',
  reordered: 'output is in another order',
  altered: 'output differs',
  'held back': 'output came late: the provider was waiting for the client to have it',
  'never ends': 'the response did not end',
  'hidden failure': 'the provider failed, and the client sees no failure',
  'false failure': 'the provider finished, and the client sees a failure',
  'wrong finish': 'the finish reason is another',
  'wrong usage': 'the counts differ',
  'wrong ids': 'ids or roles are missing, repeated or change',
  'wrong error': 'status, header, form or message of the error differ',
  leaked: 'a secret reaches the client',
  'off protocol': 'events that SDKs throw on or lose',
  'left running': 'the provider goes on although the client has left',
  'over limit': 'the measure is above the limit',
  'wrong record': "the gateway's own record differs from the provider's bill",
  'off contract': "a rule of Weir's contract is broken",
} as const;
type FaultKind = keyof typeof FAULTS;

export interface Fault {
  readonly kind: FaultKind;
  readonly text: string;
}

const SHOWN = 120;

export function judge(play: Play, gateway: Gateway, record: GatewayRecord | null): Fault[] {
  const { reading, case: one } = play;
  const { expect } = one;
  const faults: Fault[] = [];
  const add = (kind: FaultKind, text: string) => void faults.push({ kind, text });
  if (play.isTooLate) add('never ends', 'the response did not end in time');
  for (const text of play.heldBack) add('held back', `the client had to wait for ${shown(text)}`);
  judgeEnding(play, add);
  judgeOutput(reading, one, add);
  if (expect.usage !== undefined) judgeUsage(reading.usages.at(-1), expect.usage, add);
  judgeForm(reading, one, add);
  judgeError(reading, one, add);
  if (expect.isCancelled === true && play.isCancelled !== true) {
    add('left running', "the provider's connection stayed open");
  }
  if (expect.record !== undefined && record !== null) judgeRecord(record, expect.record, add);
  if (expect.rules !== undefined) {
    for (const text of brokenRules(play, gateway)) add('off contract', text);
  }
  return faults;
}

type Add = (kind: FaultKind, text: string) => void;

/** Protocols whose clients end with the body. */
const NO_LAST_EVENT: readonly Client[] = ['chat', 'gemini'];

/** `complete`: each choice has a finish reason, and the protocol's last event came. */
function isComplete(reading: Reading): boolean {
  const choices = [...reading.choices.values()];
  const isFinished = choices.length > 0 && choices.every(({ finishes }) => finishes.length > 0);
  return isFinished && (NO_LAST_EVENT.includes(reading.client) || reading.isOver);
}

function judgeEnding({ reading, case: { expect, leavesAt, readsNothing } }: Play, add: Add): void {
  const { failure } = reading;
  const { outcome } = expect;
  const wantsFailure = outcome === 'failed' || outcome === 'unfinished' || expect.status !== undefined;
  if (leavesAt !== undefined || readsNothing === true) return;
  if (outcome === 'failed' && failure === undefined) {
    add(
      'hidden failure',
      isComplete(reading) ? 'the response looks complete' : 'the response ends without a word',
    );
  } else if (outcome === 'unfinished' && failure === undefined) {
    const reason = reading.choice(0).finishes.at(-1) ?? 'none';
    if (reason !== 'length') add('hidden failure', `the finish reason is ${reason}`);
  } else if (!wantsFailure && failure !== undefined) {
    add('false failure', `${failure.kind} ${reading.status}: ${failure.message.slice(0, SHOWN)}`);
  } else if (outcome === 'complete' && !isComplete(reading)) {
    add('false failure', 'the end of the response is missing');
  }
}

function judgeOutput(reading: Reading, { expect }: Case, add: Add): void {
  if (reading.failure !== undefined && expect.outcome !== 'failed') return;
  const texts = typeof expect.text === 'string' ? [expect.text] : (expect.text ?? []);
  for (const [index, text] of texts.entries()) compare('text', text, reading.choice(index).text, add);
  const choice = reading.choice(0);
  if (expect.reasoning !== undefined) compare('reasoning', expect.reasoning, choice.reasoning, add);
  if (expect.refusal !== undefined) compare('refusal', expect.refusal, choice.refusal, add);
  if (expect.calls !== undefined) judgeCalls(choice.calls, expect.calls, add);
  if (expect.finish !== undefined) {
    for (const [index] of (texts.length > 0 ? texts : ['']).entries()) {
      const reason = reading.choice(index).finishes.at(-1) ?? 'none';
      if (reason !== expect.finish) add('wrong finish', `${reason} instead of ${expect.finish}`);
    }
  }
}

function judgeCalls(calls: readonly (Call | undefined)[], expected: readonly ExpectedCall[], add: Add): void {
  const got = calls.filter((call) => call !== undefined);
  // A list that is filled by index has a hole.
  if (got.length !== calls.length || Object.keys(calls).length !== calls.length)
    add('off protocol', 'the indexes of calls leave one out');
  if (got.length < expected.length) add('dropped', `${got.length} calls instead of ${expected.length}`);
  if (got.length > expected.length) add('doubled', `${got.length} calls instead of ${expected.length}`);
  for (const [at, want] of expected.entries()) {
    const call = got[at];
    if (call === undefined) continue;
    if (call.name !== want.name) add('altered', `the call's name is ${shown(call.name)}`);
    if (want.id !== undefined && call.id !== want.id) add('wrong ids', `the call's id is ${shown(call.id)}`);
    if (!isSameJson(want.arguments, call.arguments)) {
      const kind = kindOfDifference([...want.arguments], [...call.arguments]);
      add(kind, `arguments are ${shown(call.arguments)} instead of ${shown(want.arguments)}`);
    }
  }
}

function isSameJson(left: string, right: string): boolean {
  if (left === right) return true;
  const [one, other] = [parseJson(left), parseJson(right)];
  return isObject(one) && isObject(other) && JSON.stringify(one) === JSON.stringify(other);
}

function compare(what: string, expected: string, got: string, add: Add): void {
  if (expected === got) return;
  add(
    kindOfDifference(words(expected), words(got)),
    `${what} is ${shown(got)} instead of ${shown(expected)}`,
  );
}

function words(text: string): string[] {
  return text.match(/\S+/g) ?? [];
}

/** Compares as multisets first: what is missing, what is there too often, and only then the order. */
function kindOfDifference(expected: readonly string[], got: readonly string[]): FaultKind {
  const counts = new Map<string, number>();
  for (const piece of expected) counts.set(piece, (counts.get(piece) ?? 0) + 1);
  let extra = 0;
  let foreign = 0;
  for (const piece of got) {
    const left = counts.get(piece);
    if (left === undefined) foreign += 1;
    else if (left === 0) extra += 1;
    else counts.set(piece, left - 1);
  }
  const missing = [...counts.values()].reduce((sum, count) => sum + count, 0);
  if (foreign > 0) return 'altered';
  if (missing > 0) return extra > 0 ? 'altered' : 'dropped';
  if (extra > 0) return 'doubled';
  return expected.join(' ') === got.join(' ') ? 'altered' : 'reordered';
}

function judgeUsage(got: UsageReading | undefined, expected: ExpectedUsage, add: Add): void {
  for (const key of ['prompt', 'completion', 'total', 'cached', 'reasoning'] as const) {
    const want = expected[key];
    const value = got?.[key] ?? null;
    if (want === undefined) continue;
    if (want === null ? value === 0 : value !== want) {
      add('wrong usage', `${key} is ${value ?? 'absent'}${want === null ? '' : ` instead of ${want}`}`);
    }
  }
}

function judgeForm(reading: Reading, { expect }: Case, add: Add): void {
  if (expect.followsProtocol === true) {
    for (const problem of new Set(reading.problems)) add('off protocol', problem);
  }
  if (expect.hasOneId === true && reading.ids.size !== 1) add('wrong ids', `${reading.ids.size} ids`);
  for (const choice of reading.choices.values()) {
    if (expect.hasOneRole === true && choice.roles !== 1)
      add('wrong ids', `the role comes ${choice.roles} times`);
    if (expect.hasOneFinish === true && choice.finishes.length !== 1)
      add('wrong finish', `the finish reason comes ${choice.finishes.length} times`);
    const calls = choice.calls.filter((call) => call !== undefined);
    const ids = calls.map(({ id }) => id);
    if (expect.hasCallIds === true && ids.some((id) => id === '' || id === 'null'))
      add('wrong ids', 'a call without an id');
    else if (expect.hasCallIds === true && new Set(ids).size < ids.length)
      add('wrong ids', `two calls with the id ${shown(ids[0] ?? '')}`);
    if (expect.hasOneName === true && calls.some(({ names }) => names !== 1))
      add('doubled', "a call's name is on more than one fragment");
  }
  if (expect.hasOneUsage === true && reading.usages.length > 1)
    add('wrong usage', `usage comes ${reading.usages.length} times`);
  if (expect.hasChoicesAlways === true && reading.chunksWithoutChoice > 0)
    add('off protocol', 'a chunk without choices, though the client did not ask for usage');
  if (expect.hasNoEmptyFinish === true && reading.emptyFinishes > 0)
    add('wrong finish', `the finish reason "" comes ${reading.emptyFinishes} times`);
  if (expect.hasFewBlocks !== undefined && reading.blocks > expect.hasFewBlocks)
    add('off protocol', `${reading.blocks} blocks instead of ${expect.hasFewBlocks}`);
  if (expect.contains !== undefined && !textOfBytes(reading).includes(expect.contains))
    add('dropped', `${shown(expect.contains)} is missing`);
}

function judgeError(reading: Reading, { expect }: Case, add: Add): void {
  const { status, header, message, secret, isJsonError } = expect;
  const body = textOfBytes(reading);
  if (status !== undefined && !status.includes(reading.status))
    add('wrong error', `status ${reading.status} instead of ${status.join(' or ')}`);
  if (header !== undefined && reading.headers.get(header[0]) !== header[1])
    add('wrong error', `${header[0]} is ${reading.headers.get(header[0]) ?? 'absent'}`);
  if (message !== undefined && !body.includes(message))
    add('wrong error', `${shown(message)} is not in the error`);
  if (isJsonError === true && !('error' in objectOf(parseJson(body))))
    add('wrong error', 'the body is no JSON object with an error');
  if (secret !== undefined && body.includes(secret)) add('leaked', "the provider's message with the key");
}

function judgeRecord(record: GatewayRecord, expected: NonNullable<Case['expect']['record']>, add: Add): void {
  for (const key of ['prompt', 'completion'] as const) {
    const want = expected[key];
    if (want === undefined) continue;
    if (want === null ? record[key] === 0 : record[key] !== want)
      add(
        'wrong record',
        `${key} is ${record[key] ?? 'absent'}${want === null ? '' : ` instead of ${want}`}`,
      );
  }
  if (expected.isEstimated !== undefined && record.isEstimated !== expected.isEstimated)
    add(
      'wrong record',
      expected.isEstimated
        ? 'counted as exact, though nothing was reported'
        : 'estimated, though it was reported',
    );
}

function brokenRules({ reading, case: one }: Play, gateway: Gateway): string[] {
  const { rules = [] } = one.expect;
  if (one.client === 'messages') return checkMessages(textOfBytes(reading)).slice(0, 3);
  if (one.client === 'responses') return checkResponses(textOfBytes(reading)).slice(0, 3);
  const bytes = Buffer.concat(reading.bytes);
  const provider = gateway.providerOf?.(one.upstream) ?? '';
  const broken = check(bytes, {
    shape: 'chat',
    provider,
    usage: 'end',
    vendorEvents: 'strip',
    errorFrames: 'data',
  });
  return broken.filter((text) => rules.some((code) => new RegExp(`\\b${code}\\b`).test(text))).slice(0, 3);
}

function textOfBytes(reading: Reading): string {
  return Buffer.concat(reading.bytes).toString();
}

function shown(text: string): string {
  return JSON.stringify(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);
}
