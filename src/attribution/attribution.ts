/** Reads who sent a request and for what: user, session, app and tags, from the caller's key, headers and body. */

import { ACCESS_PREFIX } from '../auth/caller-ids.ts';
import { apiError } from '../canonical/error.ts';
import {
  isUnreadable,
  mapSecret,
  type Secret,
  secretUnreadable,
  type UnreadableSecret,
} from '../canonical/secret.ts';
import type { Attribute, HashPrompt } from '../completion/admission.ts';
import type { FactNames } from '../http/users.ts';
import { encodePrefix, PromptHasher } from '../metering/prompt-hashes.ts';
import { type Attribution, boundName, MAX_FACT_BYTES, type Tags } from '../metering/record.ts';
import { OTHER } from '../metering/report.ts';
import { isObject, type JsonObject, objectOf, parseJson, readText } from '../shared/json.ts';
import { MAX_TAGS, TAG_NAME } from '../shared/limits.ts';
import { failure, ok } from '../shared/result.ts';
import type { AttributionSettings } from './settings.ts';

/*
 * What clients send, recorded from the programs themselves on 2026-11-22 where a version is given:
 *
 * | client | session | app | body |
 * | Claude Code 2.1.330 | x-claude-code-session-id | user-agent claude-cli/2.1.330 | metadata.user_id: JSON of device_id, account_uuid, session_id |
 * | Codex 0.169.0 | session-id, thread-id | originator codex_exec | prompt_cache_key, client_metadata |
 * | opencode 1.18.33 | x-session-id, x-session-affinity | user-agent opencode/1.18.33 | |
 * | Qwen Code 0.24.4 | | user-agent QwenCode/0.24.4 | |
 * | Gemini CLI | | user-agent GeminiCLI/<version>/<model>; x-gemini-api-privileged-user-id | |
 * | Copilot CLI 1.0.102 | | user-agent OpenAI/JS 5.20.1 | |
 *
 * Earlier versions of Codex sent `session_id`; earlier ones of Claude Code wrote their user_id as `user_…_account_…_session_…`.
 * OpenRouter's clients send `x-title` and `http-referer` (openrouter.ai/docs/app-attribution).
 */
const SESSION_HEADERS = [
  'x-weir-session',
  'x-claude-code-session-id',
  'session-id',
  'session_id',
  'thread-id',
  'x-session-id',
  'x-session-affinity',
  'x-opencode-session',
] as const;

/** Gemini CLI's installation, if its user lets it send statistics: `contentGenerator.ts` of google-gemini/gemini-cli, read 2026-11-28. */
const INSTALLATION_HEADER = 'x-gemini-api-privileged-user-id';

/** A longer text of a fact is ignored. */
const MAX_READ_CHARS = 16 * 1024;
/** A value that is too long or has control characters is stored as its beginning, `~`, and a hash of the whole value. */
const HASH_CHARS = 16;
const MAX_START_BYTES = MAX_FACT_BYTES - 1 - HASH_CHARS;
/** Entries of `x-weir-tags` that are read. */
const MAX_TAG_ENTRIES = 64;

/** A user under `USERS=hash`: 96 bits of its HMAC. */
const HASHED_USER = /^h_[0-9a-f]{24}$/;
const HASHED_DIGITS = 24;

/** Reads the attribution of requests, and the names that queries use, in the form in which records have them. */
export function createAttribution({
  users,
  userHashKey,
  hashKey = null,
  reportsCaches = true,
  tags,
}: Omit<AttributionSettings, 'access'>): {
  readonly attribute: Attribute;
  readonly names: FactNames;
} {
  const hash = hasherOf(userHashKey);
  const hashOwner = hasherOf(hashKey);
  const hashPlain = userHasher(null);
  const hasher = reportsCaches ? mapSecret(hashKey, (text) => new PromptHasher(text)) : null;
  const hashPrompts: HashPrompt | null =
    hasher === null || isUnreadable(hasher)
      ? null
      : async (prompt, clientBody) => encodePrefix(await hasher.prefix(prompt, clientBody));

  async function storedUser(plain: string): Promise<string | UnreadableSecret | null> {
    const name = readName(plain);
    if (name === null || users === 'off') return null;
    if (users === 'plain') return boundFact(name);
    const hashed = await hash(name);
    return isUnreadable(hashed) ? hashed : `h_${hashed}`;
  }

  return {
    attribute: async (request) => {
      const { headers, body, caller } = request;
      const { user: fixedUser, tags: fixedTags, requiresUser } = caller.facts;
      const metadata = objectOf(body.metadata);
      const client = readClientUser(metadata.user_id);
      const requestUser = readRequestUser(headers, body, client.user);
      const user = fixedUser === null ? requestUser : readName(fixedUser);
      if (user === null && requiresUser) return failure(USER_REQUIRED);
      const session = readSession(headers, metadata, client.session);
      const app = readApp(headers);
      const found = readTags(fixedTags, headers.get('x-weir-tags'), metadata, tags);
      const stored = user === null ? null : await storedUser(user);
      if (isUnreadable(stored)) return failure(secretUnreadable(stored));
      const attribution: Attribution = {
        user: stored,
        session: session === null || users === 'off' ? null : await boundFact(session),
        app: app === null ? null : await boundFact(app),
        tags: await boundTags(found),
      };
      const hashPrompt = attribution.session === null ? null : hashPrompts;
      return ok({ attribution, session, affinity: session ?? requestUser, hashPrompt });
    },
    names: {
      hidesUsers: users !== 'plain',
      ofCaller: async (headers, { facts }) => {
        const user = facts.user === null ? readRequestUser(headers, {}, null) : readName(facts.user);
        return user === null ? null : await storedUser(user);
      },
      owner: async (plain) => {
        if (users !== 'off') return (await storedUser(plain)) ?? plain;
        return hashKey === null ? null : hashOwner(plain);
      },
      forms: async (plain) => {
        const name = readName(plain);
        if (name === null) return [];
        if (HASHED_USER.test(name)) return [name, name.replace('h_', ACCESS_PREFIX)];
        const hashed = await hash(name);
        const owner = await hashOwner(name);
        if (isUnreadable(hashed)) return hashed;
        if (isUnreadable(owner)) return owner;
        const hashes = userHashKey === null ? [] : [`h_${hashed}`];
        const owners = hashKey === null ? [] : [owner];
        // The ids of a caller of Cloudflare Access, which its limits are under.
        const callers = [hashed, await hashPlain(name)].map((digits) => ACCESS_PREFIX + digits);
        return [...new Set([name, await boundFact(name), ...hashes, ...owners, ...callers])];
      },
      user: async (plain) => (users === 'hash' && HASHED_USER.test(plain) ? plain : storedUser(plain)),
      fact: async (plain) => {
        const name = readName(plain);
        return name === null ? null : await boundFact(name);
      },
    },
  };
}

const USER_REQUIRED = apiError(
  'user_required',
  'This key takes only requests that name their user: send the header x-weir-user, or the field user',
  'user',
);

function readRequestUser(headers: Headers, body: JsonObject, clientUser: string | null): string | null {
  return (
    readName(headers.get('x-weir-user')) ??
    readName(body.safety_identifier) ??
    readName(body.user) ??
    readName(clientUser) ??
    readName(headers.get(INSTALLATION_HEADER))
  );
}

function readSession(headers: Headers, metadata: JsonObject, clientSession: string | null): string | null {
  for (const name of SESSION_HEADERS) {
    const session = readName(headers.get(name));
    if (session !== null) return session;
  }
  return readName(clientSession) ?? readName(metadata.session_id);
}

function readApp(headers: Headers): string | null {
  return (
    readName(headers.get('x-weir-app')) ??
    readName(headers.get('x-title')) ??
    readHost(headers.get('http-referer')) ??
    readName(headers.get('originator')) ??
    readName(/^[^\s/()]+/.exec(headers.get('user-agent') ?? '')?.[0])
  );
}

function readHost(referrer: string | null): string | null {
  return referrer === null || referrer.length > MAX_READ_CHARS || !URL.canParse(referrer)
    ? null
    : readName(new URL(referrer).host);
}

/** The earlier form of Claude Code's `user_id`. The account is empty for a caller with an API key. */
const CLAUDE_CODE_USER = /^user_([0-9a-f]{1,128})_account_([\w-]{0,64}?)_session_([\w-]{1,128})$/;

interface ClientUser {
  readonly user: string | null;
  readonly session: string | null;
}

/** Reads `metadata.user_id`: a plain name, or one of the two forms of Claude Code. */
function readClientUser(value: unknown): ClientUser {
  const text = readName(value);
  if (text === null) return { user: null, session: null };
  const [, device = '', account = '', session = ''] = CLAUDE_CODE_USER.exec(text) ?? [];
  if (device !== '') return { user: account || device, session };
  const ids = text.startsWith('{') ? parseJson(text) : undefined;
  if (!isObject(ids)) return { user: text, session: null };
  return {
    user: readText(ids.account_uuid) ?? readText(ids.device_id) ?? null,
    session: readText(ids.session_id) ?? null,
  };
}

/** The first source that sets a tag wins. There are at most {@link MAX_TAGS}. */
function readTags(
  fixed: Tags,
  header: string | null,
  metadata: JsonObject,
  metadataNames: readonly string[],
): ReadonlyMap<string, string> {
  const tags = new Map<string, string>();
  const add = (name: string, value: unknown) => {
    const text = readName(value);
    if (tags.size < MAX_TAGS && !tags.has(name) && text !== null && TAG_NAME.test(name)) tags.set(name, text);
  };
  for (const [name, value] of Object.entries(fixed)) add(name, value);
  for (const entry of (header ?? '').split(',', MAX_TAG_ENTRIES)) {
    const at = entry.indexOf('=');
    if (at > 0) add(entry.slice(0, at).trim(), entry.slice(at + 1));
  }
  for (const name of metadataNames) if (Object.hasOwn(metadata, name)) add(name, metadata[name]);
  return tags;
}

async function boundTags(tags: ReadonlyMap<string, string>): Promise<Tags> {
  const bounded: [string, string][] = [];
  for (const [name, value] of tags) bounded.push([name, await boundFact(value)]);
  return Object.fromEntries(bounded);
}

/** The trimmed text; null if it is empty, too long, or {@link OTHER}, which reports use for the names beyond a limit. */
function readName(value: unknown): string | null {
  const text = typeof value === 'string' && value.length <= MAX_READ_CHARS ? value.trim() : '';
  return text === '' || text === OTHER ? null : text;
}

const encoder = new TextEncoder();

/** Different texts have different results, and a result is not changed by a second call. */
async function boundFact(text: string): Promise<string> {
  if (boundName(text, MAX_FACT_BYTES) === text) return text;
  const digest = await crypto.subtle.digest('SHA-256', encoder.encode(text));
  return `${boundName(text, MAX_START_BYTES)}~${new Uint8Array(digest).toHex().slice(0, HASH_CHARS)}`;
}

/** Hashes names of users, under a secret that may not be readable now. */
function hasherOf(secret: Secret): (name: string) => Promise<string | UnreadableSecret> {
  return isUnreadable(secret) ? async () => secret : userHasher(secret);
}

/**
 * Hashes names of users.
 * @param secret the key of the HMAC; null: the hash has no key, so that anyone who guesses a name can compare it
 */
export function userHasher(secret: string | null): (name: string) => Promise<string> {
  let key: Promise<CryptoKey> | null = null;
  return async (name) => {
    const text = encoder.encode(name);
    if (secret !== null) key ??= importHashKey(secret);
    const digest =
      key === null
        ? await crypto.subtle.digest('SHA-256', text)
        : await crypto.subtle.sign('HMAC', await key, text);
    return new Uint8Array(digest).toHex().slice(0, HASHED_DIGITS);
  };
}

function importHashKey(secret: string): Promise<CryptoKey> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  return crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign']);
}
