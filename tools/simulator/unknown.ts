/**
 * Simulates a provider whose models no table names. A model's name says what it refuses, by the names of `refusal-texts.ts`:
 * `refuses-temperature`, or several in turn, `refuses-temperature+xhigh+pattern`. `plain` refuses nothing.
 *
 * Tokens (completion): plain 7.
 */
import { groqObject, groqStream } from './groq-form.ts';
import { compact, type JsonObject, textOf } from './json.ts';
import { REFUSAL_TEXTS, type RefusalText } from './refusal-texts.ts';
import { type Call, chatRoutes, errorType, openaiRefusal, type Refusal, type Scene } from './scene.ts';
import { type Script, scriptFor, wordsOf } from './script.ts';

const ANSWER = wordsOf('text', 'The gate opens at the second knock.');
const PREFIX = 'refuses-';

export const unknown: Scene = {
  id: 'unknown',
  profile: 'tolerant',
  routes: chatRoutes('unknown'),
  models: ['plain', 'refuses-temperature'],
  comment: 'ping',
  streamError: { message: 'Over capacity', type: 'internal_server_error' },
  refusal,
  check,
  stream: (call) => groqStream(call, scriptOf(call)),
  object: (call) => compact(groqObject(call, scriptOf(call))),
};

function scriptOf(call: Call): Script {
  return scriptFor(call, ANSWER);
}

function refusal(status: number, message: string): Refusal {
  return openaiRefusal(status, { message, type: errorType(status) });
}

function check({ body, model }: Call): Refusal | undefined {
  if (!model.startsWith(PREFIX)) {
    return model === 'plain' ? undefined : refusal(404, `The model \`${model}\` does not exist`);
  }
  for (const name of model.slice(PREFIX.length).split('+')) {
    const row = REFUSAL_TEXTS.find((one) => one.name === name);
    if (row === undefined) return refusal(404, `The model \`${model}\` does not exist`);
    if (refuses(row, body)) return refusalOf(row);
  }
  return undefined;
}

/** Whether the body has what the row is about: a field that the accepted request lacks, or has with another value. */
function refuses({ sent, mended, keyword }: RefusalText, body: JsonObject): boolean {
  if (keyword !== undefined)
    return JSON.stringify([body.tools, body.response_format]).includes(`"${keyword}":`);
  if (mended === null) return true;
  const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);
  return Object.keys(sent).some(
    (field) =>
      body[field] !== undefined &&
      !same(sent[field], mended[field]) &&
      (mended[field] === undefined || !same(body[field], mended[field])),
  );
}

function refusalOf({ status = 400, text }: RefusalText): Refusal {
  const isBody = /^[{["]/.test(text) && isJson(text);
  return {
    status,
    contentType: 'application/json',
    body: isBody ? text : JSON.stringify({ error: { message: text, type: 'invalid_request_error' } }),
  };
}

function isJson(text: string): boolean {
  try {
    return textOf(text) !== '' && JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}
