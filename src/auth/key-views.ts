/** Keys, teams and tokens as responses show them. */
import type { KeyFacts } from './key-facts.ts';
import type { WrittenLimits } from './key-limits.ts';
import type { ShownState } from './key-state.ts';

type Named = {
  readonly id: string;
  readonly name: string;
  /** ISO 8601. */
  readonly created_at: string;
};

/** A key. Its limits stand beside its other fields, as in the request that set them. */
export type KeyView = Named & {
  /** Globs over model addresses; null: every model. */
  readonly models: readonly string[] | null;
  /** ISO 8601, or null: never. */
  readonly expires_at: string | null;
  /** The id of its team. */
  readonly team?: string;
} & ShownState &
  KeyFacts &
  WrittenLimits;

/** A team. Its limits stand beside its other fields, as in the request that set them. */
export type TeamView = Named &
  Pick<KeyView, 'models'> & {
    /** Who falls under it without a key: addresses, groups, or everybody else. */
    readonly people?: readonly string[] | undefined;
    readonly groups?: readonly string[] | undefined;
    readonly default?: true | undefined;
  } & WrittenLimits;

/** A key that was revoked, and what it was called. */
export interface RevokedKey extends Named {
  readonly revoked_at: string;
}

/** What a token that reads usage is bound to: the parameters of its requests for usage. */
export const TOKEN_FILTERS = ['key', 'provider', 'user', 'session', 'app', 'tag'] as const;
export type TokenFilter = { readonly [Name in (typeof TOKEN_FILTERS)[number] | 'team']?: string };

/** A token that reads usage. */
export interface UsageToken extends Named {
  /** `team`: it also manages the keys of its team, to whose usage it is bound. */
  readonly scope: 'usage' | 'team';
  /** With the scope `team`. */
  readonly team?: string;
  /** Null: it reads the usage of all keys. */
  readonly filter: TokenFilter | null;
  /** ISO 8601, or null: never. */
  readonly expires_at: string | null;
}
