/** Shows a key with a budget of one cent, which ends a long answer as an output limit does. */
import { setTimeout } from 'node:timers/promises';
import { makeKey } from './demo-fill.ts';
import { frames, post } from './demo-stream.ts';
import { decodeObject, type JsonObject, numberOf, objectOf, objectsOf, textOf } from './json.ts';
import { Painter } from './terminal.ts';

const MODEL = 'gemini/gemini-3-flash-preview';
const QUESTION = 'Everything about weirs, words:4000';
const BUDGET_USD = 0.01;
/** With the model's price they cost a little more than the budget, which is then what an ended answer is charged at most. */
const MAX_TOKENS = 3400;
/** What a slice of 2,000 tokens costs at the model's $3 per million. */
const SLICE_USD = 0.006;
const SHOWN_CHARACTERS = 160;
const RECORD_LIMIT_MS = 60_000;

/** @returns the differences from what is expected */
export async function showBudget(url: string, adminToken: string): Promise<string[]> {
  const painter = new Painter();
  painter.whole('prompt', QUESTION);
  const budget = { USD: BUDGET_USD, mode: 'running' };
  const { key } = await makeKey(url, adminToken, { name: 'one cent', budget });
  const body = { model: MODEL, stream: true, messages: [{ role: 'user', content: QUESTION }] };
  const response = await post(
    { url, key },
    { path: '/v1/chat/completions', body: { ...body, max_tokens: MAX_TOKENS } },
  );
  if (!response.ok) return [`the status is ${response.status}`];
  let text = '';
  let finish = '';
  for await (const frame of frames(response.body)) {
    const [choice] = objectsOf(decodeObject(frame.slice('data: '.length))?.choices);
    text += textOf(objectOf(choice?.delta).content);
    finish ||= textOf(choice?.finish_reason);
  }
  painter.whole('text', `${text.slice(0, SHOWN_CHARACTERS)} …`);
  const record = await recordOf(url, key);
  const { ended_by: endedBy, completion_tokens: tokens, cost } = record;
  painter.note(`${finish} · ended_by ${textOf(endedBy)} · ${tokens} tokens · $${cost} of $${BUDGET_USD}`);
  return [
    ...(finish === 'length' ? [] : [`the finish reason is ${finish}, expected length`]),
    ...(endedBy === 'budget' ? [] : [`the record has ended_by ${textOf(endedBy)}, expected budget`]),
    ...((numberOf(cost) ?? 1) <= BUDGET_USD + SLICE_USD ? [] : [`the stream cost ${cost}`]),
  ];
}

/** The record of the key's one request. It is written after the stream's end. */
async function recordOf(url: string, key: string): Promise<JsonObject> {
  const deadline = Date.now() + RECORD_LIMIT_MS;
  for (;;) {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${url}/v1/usage/records`, { headers });
    const [record] = objectsOf(decodeObject(await response.text())?.data);
    if (record !== undefined || Date.now() > deadline) return record ?? {};
    await setTimeout(100);
  }
}
