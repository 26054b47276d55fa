/**
 * Sends an alert to the operator's URL: signed, with its text in the fields that Slack and Discord read. One that the
 * receiver did not accept is sent again later (G10).
 */
import { isUnreadable, secretUnreadable, type UnreadableSecret } from '../../canonical/secret.ts';
import type { JsonObject } from '../../shared/json.ts';
import { lazyPattern } from '../../shared/lazy-pattern.ts';

export interface AlertSettings {
  /** Percentages of a budget, the lowest first. Empty: there are no alerts of budgets. */
  readonly percents: readonly number[];
  /**
   * Where alerts are sent, and the secret that signs them; or the one of these secrets that could not be read. Null:
   * they are only logged.
   */
  readonly target: AlertTarget | UnreadableSecret | null;
}

interface AlertTarget {
  readonly url: string;
  readonly secret: string;
}

/** A receiver must respond within this time. */
const MAX_SEND_MS = 10_000;
/** The wait after the first failure. It doubles with each further one. */
const FIRST_WAIT_MS = 60_000;
const MAX_WAIT_MS = 60 * 60_000;
/** The wait for a secret that could not be read. */
const SECRET_WAIT_MS = 15_000;
/** After this time an alert that no receiver accepted is dropped. */
const MAX_AGE_MS = 24 * 60 * 60_000;

/** An alert that is due. */
interface DueAlert {
  /** The same at every try, so that a receiver can tell a repeated alert. */
  readonly body: string;
  /** When it was noted, in ms since the epoch. */
  readonly at: number;
  /** How often it was sent before. */
  readonly tries: number;
}

/** What came of a try. */
export interface AlertTry {
  /** Why the receiver did not take it; null: it did. */
  readonly problem: string | null;
  readonly tries: number;
  /** When it is sent again, in ms since the epoch; null: it is not. */
  readonly nextAt: number | null;
}

/**
 * @param now in ms since the epoch. It is signed, so that a receiver can refuse a copy that another sender replays.
 */
export async function sendAlert(
  { body, at, tries }: DueAlert,
  target: AlertSettings['target'],
  { fetch: send, now }: { readonly fetch: typeof fetch; readonly now: number },
): Promise<AlertTry> {
  const isWaiting = isUnreadable(target);
  const problem = isWaiting ? secretUnreadable(target).message : await post(body, target, send, now);
  const retryAt = now + (isWaiting ? SECRET_WAIT_MS : Math.min(FIRST_WAIT_MS * 2 ** tries, MAX_WAIT_MS));
  return {
    problem,
    tries: isWaiting ? tries : tries + 1,
    nextAt: problem === null || retryAt > at + MAX_AGE_MS ? null : retryAt,
  };
}

async function post(
  body: string,
  target: AlertTarget | null,
  send: typeof fetch,
  now: number,
): Promise<string | null> {
  if (target === null) return 'ALERT_URL is not set any more';
  const seconds = Math.floor(now / 1000);
  try {
    const response = await send(target.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-weir-signature': `t=${seconds},sha256=${await sign(`${seconds}.${body}`, target.secret)}`,
      },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(MAX_SEND_MS),
    });
    await response.body?.cancel();
    return response.ok ? null : `The receiver responded with status ${response.status}`;
  } catch (error) {
    return error instanceof Error ? error.name : 'The receiver could not be called';
  }
}

/**
 * Discord refuses a message of more than 2,000 characters (https://docs.discord.com/developers/resources/webhook, from
 * memory, 2026-11-28).
 */
const MAX_TEXT_CHARS = 2000;

/** The sentence of an alert for people, under the names by which Slack (`text`) and Discord (`content`) read it. */
export function wordsOf(sentence: string): JsonObject {
  const text = sentence.slice(0, MAX_TEXT_CHARS);
  // The name of a key or a model must not notify people.
  return { text, content: text, allowed_mentions: { parse: [] } };
}

/**
 * Controls, and what begins a link or a mention in Slack (https://docs.slack.dev/messaging/formatting-message-text,
 * from memory, 2026-11-28).
 */
const NOT_PLAIN = lazyPattern('[\\p{Cc}<>]', 'gu');

/** A name, or what a provider says, as a sentence may have it. */
export function plainText(name: string): string {
  return name.replace(NOT_PLAIN(), ' ');
}

/** HMAC-SHA-256 in hexadecimal digits. */
async function sign(text: string, secret: string): Promise<string> {
  const encoder = new TextEncoder();
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(text))).toHex();
}
