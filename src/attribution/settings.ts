/** The settings of the feature `attribution`: users and tags in records, and Cloudflare Access. */
import type { AuthMode } from '../auth/caller.ts';
import { isUnreadable, type Secret } from '../canonical/secret.ts';
import type { SettingsReader } from '../settings/reader.ts';
import type { PlainSettings } from '../settings/table.ts';
import { MAX_TAGS, TAG_NAME } from '../shared/limits.ts';
import { trimEnd } from '../shared/trim.ts';

export interface AttributionSettings {
  /** Whether records name users, have a hash of their names, or neither users nor sessions. */
  readonly users: PlainSettings<'attribution'>['users'];
  /** The secret under which names of users are hashed. */
  readonly userHashKey: Secret;
  /** The secret under which owners of kept responses are hashed with `USERS=off`, and prompts. */
  readonly hashKey?: Secret;
  /** Requests are compared with the earlier ones of their session, to explain breaks of the prompt cache. */
  readonly reportsCaches?: boolean;
  /** Names of the entries of a request's `metadata` that become tags. */
  readonly tags: readonly string[];
  /** The team and the application of Cloudflare Access whose tokens name users; null: tokens are not read. */
  readonly access: AccessSettings | null;
}

export interface AccessSettings {
  /** `https://<team>.cloudflareaccess.com`, without a path. */
  readonly issuer: string;
  readonly audience: string;
  /** E-mail addresses with `*` on either side of the `@`, and names of service tokens, which have no `@`. In lower case. */
  readonly admins: readonly string[];
  /** The claim of a token that has the groups of its user; null: groups are not read. */
  readonly groupsClaim: string | null;
}

export function readAttributionSettings(
  reader: SettingsReader,
  auth: AuthMode,
  adminToken: Secret = null,
): AttributionSettings {
  const { userHashKey, ...others } = readUsersAndTags(reader, auth);
  return {
    ...others,
    userHashKey,
    hashKey: userHashKey ?? adminToken,
    reportsCaches: reader.plain('cacheReport') === 'on',
    access: readAccess(reader, auth),
  };
}

const MIN_HASH_KEY_CHARS = 16;

function readUsersAndTags(
  reader: SettingsReader,
  auth: AuthMode,
): Omit<AttributionSettings, 'access' | 'hashKey' | 'reportsCaches'> {
  const users = reader.plain('users');
  const userHashKey = reader.secret('USER_HASH_KEY');
  // With AUTH=access, the ids of callers are hashes of their names.
  const isKeyNeeded = users === 'hash' || (users === 'off' && auth === 'access');
  if (isKeyNeeded && !isUnreadable(userHashKey) && (userHashKey ?? '').length < MIN_HASH_KEY_CHARS) {
    const by = users === 'hash' ? 'USERS=hash' : 'AUTH=access with USERS=off';
    reader.invalid(
      'USER_HASH_KEY',
      `must be a secret of at least ${MIN_HASH_KEY_CHARS} characters for ${by}`,
    );
  }
  const entries = (reader.text('TAGS') ?? '').split(',').map((name) => name.trim());
  const tags = entries.filter((name) => name !== '');
  if (tags.length > MAX_TAGS || !tags.every((name) => TAG_NAME.test(name)))
    reader.invalid(
      'TAGS',
      `must be at most ${MAX_TAGS} names of a-z, 0-9, _ . -, separated by commas: team, env`,
    );
  return { users, userHashKey, tags };
}

/** Tests use a local team. */
const LOOPBACK = /^http:\/\/(127\.0\.0\.1|localhost)(:\d+)?$/;
const TEAM_HOST = /^[a-z0-9-]+(\.[a-z0-9-]+)+$/;

/**
 * An e-mail address or a text without `@`. Before the `@`, `*` may be anywhere; after it, only in place of the domain or of subdomains:
 * `*.example.com`. A text without `@` has no `*`.
 */
const ADMIN_PATTERN = /^(?:[^\s@]+@(?:\*|(?:\*\.)?[^\s@*]+)|[^\s@*]+)$/;

function readAccess(reader: SettingsReader, auth: AuthMode): AccessSettings | null {
  const domain = reader.text('ACCESS_TEAM_DOMAIN');
  const audience = reader.text('ACCESS_AUD');
  const admins = readAccessAdmins(reader);
  const groupsClaim = readGroupsClaim(reader);
  if (domain === undefined && audience === undefined) {
    const message = 'needs ACCESS_TEAM_DOMAIN and ACCESS_AUD';
    if (admins.length > 0) reader.invalid('ACCESS_ADMINS', message);
    if (groupsClaim !== null) reader.invalid('ACCESS_GROUPS_CLAIM', message);
    if (auth === 'access') reader.invalid('AUTH', `access ${message}`);
    return null;
  }
  const host = trimEnd((domain ?? '').toLowerCase().replace(/^https:\/\//, ''), '/');
  const isLoopback = LOOPBACK.test(host);
  if (!isLoopback && !TEAM_HOST.test(host))
    reader.invalid('ACCESS_TEAM_DOMAIN', 'must be the domain of the team, as team.cloudflareaccess.com');
  if (audience === undefined)
    reader.invalid(
      'ACCESS_AUD',
      'must be the audience tag of the application that ACCESS_TEAM_DOMAIN protects',
    );
  return { issuer: isLoopback ? host : `https://${host}`, audience: audience ?? '', admins, groupsClaim };
}

const MAX_CLAIM_CHARS = 256;

function readGroupsClaim(reader: SettingsReader): string | null {
  const claim = reader.text('ACCESS_GROUPS_CLAIM')?.trim() ?? null;
  if (claim !== null && (claim === '' || claim.length > MAX_CLAIM_CHARS))
    reader.invalid(
      'ACCESS_GROUPS_CLAIM',
      `must be the name of a claim, of 1 to ${MAX_CLAIM_CHARS} characters`,
    );
  return claim;
}

function readAccessAdmins(reader: SettingsReader): readonly string[] {
  const entries = (reader.text('ACCESS_ADMINS') ?? '').split(',').map((entry) => entry.trim().toLowerCase());
  const admins = entries.filter((entry) => entry !== '');
  const wrongAt = admins.findIndex((entry) => !ADMIN_PATTERN.test(entry));
  if (wrongAt >= 0)
    reader.invalid(
      'ACCESS_ADMINS',
      `must be e-mail addresses and names of service tokens, as ada@example.com, *@ops.example.com, separated by commas; entry ${wrongAt + 1} is neither`,
    );
  return admins;
}
