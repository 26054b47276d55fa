/** Turns a request into a reply: finds the scene, checks key and request, then returns the scene's stream or object, or a fault. */
import type { Good } from './fault-steps.ts';
import { faultyReply, isFault } from './faults.ts';
import { textOf } from './json.ts';
import type { PromptCache } from './prompt-cache.ts';
import type { RecordedRequest } from './recorded-request.ts';
import { EVENT_STREAM_HEAD, JSON_HEAD, paced, type Reply, replyOf, STREAM_HEAD } from './reply.ts';
import { type Call, modelList, openaiRefusal, type Refusal, type Scene, type WireEvent } from './scene.ts';
import { findScene } from './scenes.ts';

interface AnswerOptions {
  /** The simulator's own URL. */
  readonly origin: string;
  readonly defaultFault: string | undefined;
  readonly cache: PromptCache | null;
}

export async function answer(
  request: RecordedRequest,
  { origin, defaultFault, cache }: AnswerOptions,
): Promise<Reply> {
  const { pathname } = new URL(request.path, origin);
  const found = findScene(pathname);
  if (!found) {
    return replyOf(openaiRefusal(404, { message: `No route ${pathname}`, type: 'not_found' }));
  }
  const { scene, operation, inPath } = found;
  const { body = {}, serial, headers } = request;
  const { model, fault } = splitFault(inPath?.model ?? textOf(body.model ?? body.agent_id), scene);
  const call: Call = {
    ...{ operation, path: pathname, model, headers, body, serial },
    ...(cache === null || operation === 'models' || operation === 'count'
      ? {}
      : { cachedShare: cache.read(`${scene.id} ${model}`, body) }),
  };
  const credential = (await scene.judgeSignature?.(request, origin)) ?? 'unsigned';
  const refusal = typeof credential === 'object' ? credential : refusalOf(request, call, scene, credential);
  if (refusal) return replyOf(refusal);
  const isStreamed = inPath?.isStreamed ?? body.stream === true;
  const good = { ...goodAnswer(call, scene, isStreamed), scene, elsewhere: `${origin}/elsewhere` };
  const name = fault ?? (textOf(headers['x-simulator-fault']) || defaultFault);
  const faulty = name === undefined ? undefined : faultyReply(name, good);
  return faulty ?? { head: good.head, steps: paced(good.events) };
}

/** `deepseek-chat:cut` is deepseek-chat with the fault `cut`. A colon before any other word is part of the model's name. */
function splitFault(name: string, scene: Scene): { model: string; fault?: string } {
  const colon = name.lastIndexOf(':');
  const fault = name.slice(colon + 1);
  return colon > 0 && isFault(fault, scene) ? { model: name.slice(0, colon), fault } : { model: name };
}

function refusalOf(
  request: RecordedRequest,
  call: Call,
  scene: Scene,
  credential: 'accepted' | 'unsigned',
): Refusal | undefined {
  const isList = call.operation === 'models';
  const key = keyOf(request, scene);
  if (credential === 'unsigned' && !key?.startsWith('sim-')) {
    return (key === undefined ? undefined : scene.badKey) ?? scene.refusal(401, 'Invalid API key');
  }
  if (request.method !== (isList ? 'GET' : 'POST')) return scene.refusal(405, 'Method Not Allowed');
  if (isList) return undefined;
  return request.body ? scene.check(call) : scene.refusal(400, 'The body is not a JSON object');
}

function keyOf({ headers }: RecordedRequest, { keyOf: own }: Scene): string | undefined {
  const key = own === undefined ? headers.authorization?.replace(/^Bearer /, '') : own(headers);
  return typeof key === 'string' ? key : undefined;
}

function goodAnswer(
  call: Call,
  scene: Scene,
  isStreamed: boolean,
): Pick<Good, 'head' | 'streamed' | 'events' | 'object'> {
  const object = call.operation === 'models' ? (scene.list?.() ?? modelList(scene)) : scene.object(call);
  if (call.operation !== 'models' && isStreamed) {
    const events = [...scene.stream(call)];
    const head = events[0]?.bytes === undefined ? STREAM_HEAD : EVENT_STREAM_HEAD;
    return { head, streamed: true, events, object };
  }
  return { head: JSON_HEAD, streamed: false, events: halves(object), object };
}

function halves(object: string): WireEvent[] {
  const middle = Math.floor(object.length / 2);
  return [object.slice(0, middle), object.slice(middle)].map((text) => ({ kind: 'piece', text }));
}
