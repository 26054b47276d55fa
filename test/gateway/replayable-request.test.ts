/** Tests how long a request is kept, its memory, and the body for each target (R10). */

import { describe, expect, test } from 'vitest';
import type { CanonicalRequest } from '../../src/canonical/conversation.ts';
import { ReplayableRequest } from '../../src/completion/replayable-request.ts';
import { maxWrittenBytes } from '../../src/completion/written-body.ts';
import { LearnedRefusals } from '../../src/fitting/learned.ts';
import type { MemoryGrant } from '../../src/stream/memory.ts';
import { DEFAULT_POLICIES } from '../canonical/default-policies.ts';
import { settingsWith, targetsOf } from '../routing/targets.ts';
import { type Behavior, event, ROLE, RoutedGateway, settle, sse } from './upstreams.ts';

const KIB = 1024;
const BODY = { model: 'x', models: ['y'], messages: [{ role: 'user', content: 'Hi' }], max_tokens: 7 };

/** A request, and the calls of its grant. */
function hold(
  body: object = BODY,
  { turns = null, session = null }: { turns?: CanonicalRequest['turns']; session?: string | null } = {},
) {
  const reported: string[] = [];
  const tell = (word: string) => async () => void reported.push(word);
  const grant: MemoryGrant = {
    revoked: new Promise(() => {}),
    markReceived: () => void reported.push('arrived'),
    startWork: tell('begin'),
    pause: async () => {},
    endWork: () => void reported.push('end'),
    release: () => void reported.push('release'),
  };
  const clientBody = {
    clientBody: { ...body },
    clientBodyBytes: 100,
    fields: { ...body },
    turns,
    client: { passthrough: null },
    translationError: null,
    dropped: [],
    grant,
  };
  return {
    held: new ReplayableRequest(clientBody, {
      context: {
        settings,
        upstreams: { learned: new LearnedRefusals() },
        ports: { clock: { now: () => 0 } },
      },
      route: 'chat',
      headers: new Headers(),
      callerPays: false,
      caller: { keyId: 'k' },
      session,
      policies: DEFAULT_POLICIES,
      unsupported: 'auto',
    }),
    reported,
  };
}

const settings = settingsWith({
  ALIASES: { all: ['openai/a', { model: 'mistral/b', set: { n: 2, max_tokens: 9 } }] },
});
const [OPENAI, MISTRAL = targetsOf(['mistral/b'])[0]] = targetsOf(['all'], { settings });

describe('R10 ReplayableRequest', () => {
  test('writes the request for each target, in a turn of its own', async () => {
    const { held, reported } = hold();
    const first = await held.writeFor(OPENAI);
    held.endWork();
    const second = await held.rewriteFor(MISTRAL);
    const { messages } = BODY;
    expect(first).toMatchObject({
      value: { url: 'https://api.openai.com/v1/chat/completions', traits: { choices: 1 } },
    });
    expect(first.kind === 'ok' && JSON.parse(first.value.json)).toEqual({
      model: 'a',
      messages,
      max_completion_tokens: 7,
    });
    expect(second.kind === 'ok' && JSON.parse(second.value.json)).toEqual({
      model: 'b',
      messages,
      max_tokens: 9,
      n: 2,
    });
    expect(second).toMatchObject({ value: { traits: { choices: 2 } } });
    expect(reported).toEqual(['end', 'begin']);
  });

  test('the conversation of a Messages client, and the messages that an alias sets instead', async () => {
    const turns = [{ role: 'user', blocks: [{ kind: 'text', text: 'Hi' }], extra: {} }] as const;
    const { held } = hold({ model: 'all', messages: [] }, { turns });
    const said = [{ role: 'user', content: 'As set' }];
    const setting = settingsWith({ ALIASES: { said: [{ model: 'mistral/b', set: { messages: said } }] } });
    const [instead] = targetsOf(['said'], { settings: setting });
    const sent = [await held.writeFor(MISTRAL), await held.writeFor(instead)];
    expect(sent.map((one) => one.kind === 'ok' && one.value.body.messages)).toEqual([
      [{ role: 'user', content: 'Hi' }],
      said,
    ]);
    expect(sent.map((one) => one.kind === 'ok' && one.value.chatBody.messages)).toEqual([
      [{ role: 'user', content: 'Hi' }],
      said,
    ]);
  });

  test('with a session: the same text, and those of the messages, of which hashes are made', async () => {
    const messages = [
      { role: 'user', content: 'Hi "there"\u2028\ud800', name: undefined },
      { role: 'user', content: [{ type: 'text', text: 'é' }], 7: 1, x: null },
    ];
    const body = { ...BODY, messages, seed: JSON.rawJSON('12345678901234567890'), user: undefined, 5: [] };
    const [plain, kept] = await Promise.all(
      [null, 's'].map((session) => hold(body, { session }).held.writeFor(MISTRAL)),
    );
    if (plain?.kind !== 'ok' || kept?.kind !== 'ok') throw new Error('The request was not written');
    expect(kept.value.json).toBe(plain.value.json);
    expect(plain.value.itemTexts).toBe(null);
    const written = kept.value.body.messages as readonly unknown[];
    expect(kept.value.itemTexts).toEqual(written.map((message) => JSON.stringify(message)));
  });

  test('with a session: a body that is nested too deep for the engine is refused', async () => {
    let deep: unknown = 'x';
    for (let i = 0; i < 20_000; i++) deep = [deep];
    for (const fields of [{ messages: [{ role: 'user', content: deep }] }, { stop: deep }]) {
      const written = await hold({ ...BODY, ...fields }, { session: 's' }).held.writeFor(OPENAI);
      expect(written).toMatchObject({ kind: 'error', error: { code: 'request_too_large' } });
    }
  });

  test('G2 the key’s output limit is in every body, and reported if it changes something', async () => {
    const { held } = hold();
    const first = await held.writeFor(OPENAI);
    held.limitOutput(() => 8);
    const second = await held.rewriteFor(MISTRAL);
    if (first.kind === 'error' || second.kind === 'error') throw new Error('The request was not written');
    const limited = await held.writeFor(OPENAI);
    if (limited.kind === 'error') throw new Error('The request was not written');
    const { json, traits } = limited.value;
    expect([JSON.parse(json).max_completion_tokens, traits.changed]).toEqual([7, []]);
    expect([second.value.body.max_tokens, second.value.traits.changed]).toEqual([8, ['max_tokens']]);
  });

  test('B2 a body that exceeds its bound after translation: 413 with the bound and the largest field', async () => {
    const description = 'x'.repeat(128 * KIB + 400);
    const { held } = hold({ ...BODY, tools: [{ type: 'function', function: { name: 'f', description } }] });
    const written = await held.writeFor(OPENAI);
    expect(written).toMatchObject({
      kind: 'error',
      error: { status: 413, code: 'request_too_large', param: 'tools' },
    });
    expect(written.kind === 'error' && written.error.message).toBe(
      'Translated for OpenAI, the request is larger than its bound of 131472 bytes. Its largest field is tools: send less at once',
    );
    expect((await hold().held.writeFor(OPENAI)).kind).toBe('ok');
  });

  test('B2 the bound depends on the size of the client’s body and on its bound', () => {
    expect(maxWrittenBytes(100, 10_000)).toBe(128 * KIB + 400);
    expect(maxWrittenBytes(9000, 10_000)).toBe(128 * KIB + 10_000);
  });

  test('released: nothing stays in memory, and nothing can be written', async () => {
    const { held, reported } = hold();
    held.release();
    held.release();
    expect(reported).toEqual(['release']);
    expect(await held.writeFor(OPENAI)).toMatchObject({ kind: 'error' });
  });

  test('released while its last body is sent: its memory counts until it was sent', async () => {
    const { held, reported } = hold();
    const sent = Promise.withResolvers<void>();
    held.release(sent.promise);
    expect(await held.writeFor(OPENAI)).toMatchObject({ kind: 'error' });
    expect(reported).toEqual([]);
    sent.resolve();
    await settle();
    expect(reported).toEqual(['release']);
  });

  test('released while it waits for its turn: the turn ends', async () => {
    const { held, reported } = hold();
    const written = held.rewriteFor(OPENAI);
    held.release();
    expect(await written).toMatchObject({ kind: 'error' });
    expect(reported).toEqual(['begin', 'release', 'end']);
  });
});

describe('R10 B3 a large request', () => {
  const LARGE = { messages: [{ role: 'user', content: 'x'.repeat(9 * 1024 * 1024) }], stream: true };
  const HANGING: Behavior = { ...sse(ROLE), ending: 'hang' } as Behavior;

  /** Two take all the memory; a third waits until one of them is released. */
  async function askThree(gateway: RoutedGateway, model: string) {
    const first = new AbortController();
    const requested = [
      gateway.ask({ model, ...LARGE }, { signal: first.signal }),
      gateway.ask({ model, ...LARGE }),
      gateway.ask({ model, ...LARGE }),
    ];
    for (const one of requested) one.catch(() => {});
    // Between the work on one large body and the next there is a pause.
    for (let i = 0; i < 20; i++) {
      await settle();
      gateway.clock.advance(10);
    }
    return first;
  }

  test('is kept until its output begins, if another attempt may follow', async () => {
    const gateway = new RoutedGateway({ first: [HANGING] }, { RETRIES: '1', IDLE_TIMEOUT_SECONDS: '0' });
    const first = await askThree(gateway, 'openai/first');
    expect(gateway.requests).toHaveLength(2);
    first.abort();
    for (let i = 0; i < 20; i++) {
      await settle();
      gateway.clock.advance(10);
    }
    expect(gateway.requests).toHaveLength(3);
  });

  test('is released if no attempt may follow, and after its output began', async () => {
    const one = new RoutedGateway({ first: [HANGING] }, { RETRIES: '0', IDLE_TIMEOUT_SECONDS: '0' });
    await askThree(one, 'openai/first');
    expect(one.requests).toHaveLength(3);
    const begun: Behavior = { ...sse(ROLE, event({ content: 'Hello' })), ending: 'hang' } as Behavior;
    const served = new RoutedGateway({ first: [begun] }, { RETRIES: '1', IDLE_TIMEOUT_SECONDS: '0' });
    await askThree(served, 'openai/first');
    expect(served.requests).toHaveLength(3);
  });
});
