/** Identifies the caller of a request by its credential, as the `AUTH` mode says (K1, K3). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { isUnreadable, type Secret, secretUnreadable, type UnreadableSecret } from '../canonical/secret.ts';
import { matchesAnyGlob } from '../shared/glob.ts';
import type { JsonObject } from '../shared/json.ts';
import { failure, ok, type Result } from '../shared/result.ts';
import { callerId, OPEN_ID } from './caller-ids.ts';
import { teamOf } from './key-limits.ts';
import { type GatewayKey, isToken, type KnownKeys, sameDigest, sha256 } from './keys.ts';
import type { KnownPeople, Person } from './people.ts';
import { type KnownTeams, type Team, withTeam } from './teams.ts';

/**
 * `keys`: callers send a gateway key of this deployment. `passthrough`: callers send their own provider key, which is forwarded.
 * `open`: callers send no key, for local runs. `access`: users of Cloudflare Access need no key, all others send a gateway key.
 */
export type AuthMode = 'keys' | 'passthrough' | 'open' | 'access';

export interface Caller {
  /**
   * Usage is recorded under this id: the gateway key's id, the start of the SHA-256 of the caller's own provider key,
   * `open`, or that of the user of Cloudflare Access.
   */
  readonly keyId: string;
  /** Globs over the addresses of the models that the caller may use; null: all. */
  readonly models: readonly string[] | null;
  /** The id of the team of its key, or of a person without a key. Absent: it has none. */
  readonly team?: string;
  /** Globs over the addresses of the models that the keys of its team may use; null: all. Absent: it has no team. */
  readonly teamModels?: readonly string[] | null;
  /** The gateway key, under `keys` and `access`; otherwise null. */
  readonly key: GatewayKey | null;
  /** The stored limits of the key, with the defaults and the budgets of its team. Absent: it has no team, and its own limits apply. */
  readonly limits?: JsonObject | null;
  /** The team of a caller of Cloudflare Access without a key: `limits` are those of the team, of which it has `per_user`. */
  readonly personOf?: Team;
  /** The caller's own provider key, under `passthrough`; otherwise null. */
  readonly credential: string | null;
  readonly facts: CallerFacts;
}

/** What the key, the host or Cloudflare Access fixes about its requests. No request overrides it. */
export interface CallerFacts {
  readonly user: string | null;
  readonly tags: Readonly<Record<string, string>>;
  /** Requests without a user are refused. */
  readonly requiresUser: boolean;
}

/** The user of a request's token of Cloudflare Access. */
export interface AccessUser extends Person {
  /** The user's id as a caller, under `AUTH=access`; or the secret that it needs, which could not be read. */
  readonly keyId: string | UnreadableSecret;
  /** One of `ACCESS_ADMINS`. */
  readonly isAdmin: boolean;
  /** The client sent the token as its credential, which no browser does by itself. False: it is in the header that Access adds. */
  readonly isCredential: boolean;
}

export const NO_CALLER_FACTS: CallerFacts = { user: null, tags: {}, requiresUser: false };

/** Of each request with `AUTH=open`. */
export const OPEN: Caller = {
  keyId: OPEN_ID,
  models: null,
  key: null,
  credential: null,
  facts: NO_CALLER_FACTS,
};

/**
 * Returns the caller, or a 401; a 503 if a secret that it needs could not be read. It runs before the body is read and
 * before any upstream is called.
 * @param now in ms since the epoch
 */
export async function identify(
  mode: Exclude<AuthMode, 'open'>,
  adminToken: Secret,
  headers: Headers,
  keys: Pick<KnownKeys, 'find'>,
  teams: Pick<KnownTeams, 'find'>,
  now: number,
): Promise<Result<Caller, ApiError>> {
  const token = (mode === 'passthrough' ? null : gatewayToken(headers)) ?? callerToken(headers);
  if (token === null) {
    const verb = mode === 'access' ? 'Sign in through Cloudflare Access, or send' : 'Send';
    return unauthorized(`${verb} your key as "Authorization: Bearer <key>"`);
  }
  if (mode === 'passthrough') {
    // The credential is forwarded to the provider, and the admin token must not be.
    const admin = await isAdmin(adminToken, headers);
    if (admin.kind === 'error') return admin;
    if (admin.value) return unauthorized("The admin token is not a provider's key");
    const keyId = await callerId('credential', token);
    return ok({ keyId, models: null, key: null, credential: token, facts: NO_CALLER_FACTS });
  }
  const key = await keys.find(token, now);
  if (key === null) return failure(UNKNOWN_KEY);
  if (key === 'unreadable') return failure(UNREADABLE_KEY);
  const { id, models, user, tags, require_user } = key;
  const facts = { user: user ?? null, tags: tags ?? {}, requiresUser: require_user === true };
  const caller = { keyId: id, models, key, credential: null, facts };
  const teamId = teamOf(key.limits);
  if (teamId === null) return ok(caller);
  const team = await teams.find(teamId, now);
  // Which models its keys may use is not known.
  if (team === null) return failure(UNREADABLE_TEAM);
  return ok({ ...caller, team: teamId, teamModels: team.models, limits: withTeam(key.limits, team) });
}

/** No key that is valid now has this text. */
export const UNKNOWN_KEY = apiError('invalid_api_key', 'This key is unknown, revoked, disabled or expired');

export const UNREADABLE_KEY = apiError(
  'ledger_unreadable',
  'What is stored of this key (WEIR_KV) cannot be read: an admin writes its entry anew, or revokes it',
);

const UNREADABLE_TEAM = apiError(
  'ledger_unreadable',
  'What is stored of the team of this key (WEIR_KV) cannot be read: an admin gives the key another team, or none',
);

/**
 * The caller for a user of Cloudflare Access who sends no gateway key: under `AUTH=access`, or with the token as its
 * credential. It falls under the limits of its team, if it has one. Fails where that is not known.
 * @param now in ms since the epoch
 */
export async function accessCaller(
  user: AccessUser,
  people: Pick<KnownPeople, 'find'>,
  teams: Pick<KnownTeams, 'find'>,
  now: number,
): Promise<Result<Caller, ApiError>> {
  const { keyId } = user;
  if (isUnreadable(keyId)) return failure(secretUnreadable(keyId));
  const caller = { keyId, models: null, key: null, credential: null, facts: NO_CALLER_FACTS };
  const rules = await people.find(now);
  if (rules === 'unreadable') return failure(UNREADABLE_PEOPLE);
  const found = rules.teamOf(user);
  if (found.kind === 'none') return ok(caller);
  if (found.kind === 'unknown') return failure(unknownGroups(found.reason));
  const team = await teams.find(found.id, now).catch(() => null);
  // Its limits are not known, or it was deleted a moment ago.
  if (team === null) return failure(UNREADABLE_PEOPLE);
  const { per_key: _, ...limits } = team.limits ?? {};
  return ok({
    ...caller,
    ...{ team: team.id, teamModels: team.models, personOf: team },
    limits: Object.keys(limits).length === 0 ? null : limits,
  });
}

/** The teams of people are not known. No permission follows from that. */
export const UNREADABLE_PEOPLE: ApiError = {
  ...apiError(
    'ledger_unreachable',
    'The team of this caller (WEIR_KV) cannot be read now, so its limits are not known: try again',
  ),
  retryAfterSeconds: 5,
};

function unknownGroups(reason: string): ApiError {
  return apiError(
    'groups_unknown',
    `Teams have groups, and those of this caller are not known: ${reason}. An admin adds the claim to the token (ACCESS_GROUPS_CLAIM), names the caller in people of a team, or makes a team the default`,
  );
}

function unauthorized(message: string): Result<Caller, ApiError> {
  return failure(apiError('invalid_api_key', message));
}

/** Whether the request has the deployment's admin token; false if none is set. Fails if that cannot be known now. */
export async function isAdmin(adminToken: Secret, headers: Headers): Promise<Result<boolean, ApiError>> {
  const token = callerToken(headers);
  if (adminToken === null || token === null) return ok(false);
  if (isUnreadable(adminToken)) return failure(secretUnreadable(adminToken));
  return ok(sameDigest(await sha256(adminToken), await sha256(token)));
}

/**
 * The credential of a request: a bearer token, or the header that clients of Azure (`api-key`), Anthropic (`x-api-key`) or Google
 * (`x-goog-api-key`) have for it.
 */
export function callerToken(headers: Headers): string | null {
  return credentialsOf(headers)[0] ?? null;
}

/** The gateway key of a request; null without one. It comes before a token of Cloudflare Access in another header. */
export function gatewayToken(headers: Headers): string | null {
  const [first, ...others] = credentialsOf(headers);
  if (first === undefined || isToken(first)) return first ?? null;
  return isAccessToken(first) ? (others.find(isToken) ?? null) : null;
}

/** What may be a token of Cloudflare Access among the credentials of a request; null: none has its form. */
export function accessToken(headers: Headers): string | null {
  // With all that follows, so that what is no token is refused, not passed over.
  const bearer = /^Bearer +(eyJ.*)$/i.exec(headers.get('authorization') ?? '')?.[1];
  return bearer ?? credentialsOf(headers).find(isAccessToken) ?? null;
}

function credentialsOf(headers: Headers): readonly string[] {
  const bearer = /^Bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '')?.[1];
  // Gemini CLI sends an empty header where it has no key.
  const google = headers.get('x-goog-api-key') || null;
  const sent = [bearer, headers.get('api-key'), headers.get('x-api-key'), google];
  return sent.filter((credential) => credential !== undefined && credential !== null);
}

/** A JWT: the beginning of `{"` in Base64. */
function isAccessToken(credential: string): boolean {
  return credential.startsWith('eyJ');
}

/** Whether the caller's key has limits, which its ledger object enforces. */
export function isLimited(caller: Caller): boolean {
  return limitsOf(caller) !== null;
}

/** The limits of the caller as KV lists them, with those of its team. */
export function limitsOf({ key, limits }: Pick<Caller, 'key' | 'limits'>): JsonObject | null {
  return limits ?? key?.limits ?? null;
}

/** The limits that KV lists for the key itself, or for the team of a caller without a key. */
export function listedLimits({ key, personOf }: Caller): JsonObject {
  return key?.limits ?? personOf?.limits ?? {};
}

/** Whether each user of the caller's key, or each person of its team, has limits. */
export function hasUserLimits(caller: Caller): boolean {
  return limitsOf(caller)?.per_user !== undefined;
}

/** Whose object admits the requests of a caller with limits. */
export interface LimitedUser {
  /** As it is stored; null: requests without a user. */
  readonly name: string | null;
  /** The team of a person without a key, whose `name` is its id as a caller. Absent: it is a user of the key. */
  readonly team?: string;
}

/** The user of the key, or the person of the team; null: the key itself. @param user of the request, as it is stored */
export function limitedUser(caller: Caller, user: string | null): LimitedUser | null {
  const { keyId, personOf } = caller;
  if (personOf !== undefined) return { name: keyId, team: personOf.id };
  return hasUserLimits(caller) ? { name: user } : null;
}

/** Whether the caller may use the model at this address. */
export function mayUse(caller: Caller, address: string): boolean {
  const { models, teamModels = null } = caller;
  return [models, teamModels].every((globs) => globs === null || matchesAnyGlob(globs, address));
}
