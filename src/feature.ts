/** Features: what a deployment can leave out. The gateway takes a list of them, and reads their settings together with its own. */
import type { AccessUser } from './auth/caller.ts';
import type { HashUser } from './auth/user-hash.ts';
import type { ApiError } from './canonical/error.ts';
import type { UnreadableSecret } from './canonical/secret.ts';
import type {
  Admissions,
  Attribute,
  CircuitOpened,
  CompareCache,
  CompletionContext,
} from './completion/admission.ts';
import type { ErrorClient, KeyObjects, Ports, RequestContext, ShowKept, UserData } from './http/context.ts';
import type { Erasure } from './http/erasure.ts';
import type { FactNames } from './http/users.ts';
import type { Ledger, LedgerStatus } from './metering/ledger.ts';
import type { RecordSink, RecordWriter } from './metering/record-writer.ts';
import type { HttpRoute } from './routes.ts';
import { isFeatureName, unenforcedSettings } from './settings/feature-settings.ts';
import {
  type SecretBinding,
  type SecretValues,
  type SettingProblem,
  SettingsReader,
} from './settings/reader.ts';
import { readSettings, type Settings } from './settings/settings.ts';
import type { FeatureName } from './settings/table.ts';
import { type Running, readVersion } from './settings/version.ts';
import { isObject, type JsonObject } from './shared/json.ts';
import type { Result } from './shared/result.ts';
import type { Feature, WorkerMessage } from './types.ts';

/** A feature as the gateway uses it. Hosts see {@link Feature}. */
export interface FeatureModule<Name extends FeatureName = FeatureName> extends Feature<Name> {
  /**
   * Reads the feature's settings and bindings. What is invalid is reported to the reader.
   * @param settings of the core; they may be invalid, too
   */
  configure(reader: SettingsReader, settings: Settings): ConfiguredFeature;
  /** The classes of its Durable Objects, by the name under which a Worker exports them. */
  objects?<Env>(gateway: OpenGateway<Env>): Readonly<Record<string, unknown>>;
}

/** A feature with the settings of one environment. */
export interface ConfiguredFeature {
  /** A route with the path of one of the core's routes replaces it. */
  readonly routes?: readonly HttpRoute[];
  /** Creates what runs before the gateway, also while other settings are invalid. */
  readonly before?: (ports: BeforePorts) => Before | null;
  /** The feature names admins besides the bearer of the admin token. */
  readonly hasAdmins?: boolean;
  /** It reads the groups of people. */
  readonly readsGroups?: boolean;
  /** A site has all paths that Weir does not: new routes take none of them. */
  readonly hasSite?: boolean;
  /** Creates what the gateway uses. Called once for each gateway. */
  readonly start?: (ports: Ports) => FeatureParts;
}

/** What a feature adds to the gateway. No two features have the same part, but for `userData` and `scheduled`. */
export interface FeatureParts {
  readonly attribution?: AttributionPart;
  readonly limits?: LimitsPart;
  /** Absent: records are in KV. */
  readonly records?: RecordsPart;
  readonly showKept?: ShowKept;
  readonly userData?: UserData;
  readonly stepErasure?: (context: RequestContext, erasure: Erasure) => Promise<Erasure | null>;
  readonly circuitOpened?: CircuitOpened;
  readonly queue?: (messages: readonly WorkerMessage[]) => Promise<void>;
  /**
   * @param dueAt when the run was due, in ms since the epoch
   * @param ownContext makes the context of work that no request started
   */
  readonly scheduled?: (dueAt: number, ownContext: OwnContext) => Promise<void>;
}

/** Who sends requests and for what. */
export interface AttributionPart {
  readonly attribute: Attribute;
  readonly names: FactNames;
  readonly hashUser: HashUser | UnreadableSecret | null;
  /** Null: no team of Cloudflare Access is set. */
  readonly verifyAccess: VerifyAccess | null;
}

/** Enforces the limits of keys. */
export interface LimitsPart {
  readonly admission: Admissions;
  /** Wraps the writer of records, to settle what was reserved. */
  readonly settle: (
    records: Pick<RecordWriter, 'write'>,
    context: Pick<RequestContext, 'ports' | 'settings' | 'waitUntil'>,
  ) => Pick<RecordWriter, 'write'>;
  readonly keyObjects: KeyObjects;
}

/** Where usage records are. */
export interface RecordsPart {
  readonly ledger: Ledger;
  /** Where records are delivered, tried in order. */
  readonly sinks: readonly RecordSink[];
  readonly status: () => Promise<LedgerStatus>;
  /** Null where sessions are not kept. */
  readonly compareCache: CompareCache | null;
}

/** Makes the context of work that no request started. */
type OwnContext = (waitUntil: (work: Promise<unknown>) => void) => CompletionContext;

/**
 * The user of a request's token of Cloudflare Access, null without one; 401 for an invalid token, 503 without keys.
 * @param from the header that Access adds, or the credential of the client
 */
export type VerifyAccess = (
  headers: Headers,
  from: 'header' | 'credential',
) => Promise<Result<AccessUser | null, ApiError>>;

export interface BeforePorts extends Pick<Ports, 'fetch' | 'log'> {
  /** Whether Weir has a route with this path. */
  readonly hasRoute: (pathname: string) => boolean;
}

/** Responds to requests that are not for Weir; null: the request is for Weir. */
export type Before = (
  request: Request,
  context: Pick<ExecutionContext, 'passThroughOnException'>,
) => Promise<Response | ApiError | null>;

/** Makes the context of work that no request of a client started, such as a background response. Throws while settings are invalid. */
export type NewContext = (
  request: Pick<RequestContext, 'requestId' | 'arrivedAt'> & Partial<Pick<RequestContext, 'continent'>>,
  client: ErrorClient,
  waitUntil: (work: Promise<unknown>) => void,
) => CompletionContext;

/** Takes the next steps of an erasure, within the bounds of one invocation. @returns null: it is forgotten */
export type StepErasure = (
  erasure: Erasure,
  waitUntil: (work: Promise<unknown>) => void,
) => Promise<Erasure | null>;

/** The gateway of an environment, as a Durable Object uses it. */
export interface OpenGateway<Env> {
  readonly newContext: (env: Env) => NewContext;
  readonly stepErasure: (env: Env) => StepErasure;
  /** The environment with the options, read again. */
  readonly settings: (env: Env) => SettingsReader;
  /** Resolves when the environment's secrets are read; null: they are. */
  readonly ready: (env: Env) => Promise<void> | null;
}

/** The settings of one environment: those of the core, and the features with theirs. */
export interface Deployment {
  readonly settings: Settings;
  readonly features: readonly ConfiguredFeature[];
  readonly running: Running;
}

export type DeploymentResult = {
  /** The names of all settings, including the secrets that `PROVIDERS` refers to. */
  readonly names: ReadonlySet<string>;
  /** Invalid where there are problems. */
  readonly deployment: Deployment;
  readonly problems: readonly SettingProblem[];
  /** Settings without effect, because another one takes precedence. */
  readonly overridden: readonly SettingProblem[];
  /** The secrets that must be read before the settings are complete. */
  readonly unread: ReadonlyMap<string, SecretBinding>;
};

/**
 * Reads the settings of the core and of the listed features. A restriction that only another feature enforces is a problem.
 * @param variables the environment without the options
 */
export function readDeployment(
  env: JsonObject,
  listed: readonly FeatureModule[],
  secrets?: SecretValues,
  variables: JsonObject = env,
): DeploymentResult {
  const reader = new SettingsReader(env, secrets);
  const settings = readSettings(reader);
  const features = listed.map((feature) => feature.configure(reader, settings));
  for (const { setting, message } of unenforcedSettings(env, new Set(listed.map(({ name }) => name))))
    reader.invalid(setting, message);
  const { names, problems, overridden, unread } = reader;
  const running = {
    ...readVersion(reader),
    features: listed.map(({ name }) => name),
    settings: reader.inForce(variables),
  };
  return { names, problems, overridden, unread, deployment: { settings, features, running } };
}

export interface ListedFeatures {
  readonly features: readonly FeatureModule[];
  readonly problems: readonly SettingProblem[];
}

/** Checks the option `features`, which a host in JavaScript may get wrong. */
export function readFeatures(option: unknown = []): ListedFeatures {
  const problem = (message: string) => [{ setting: 'the option features', message }];
  if (!Array.isArray(option) || !option.every(isFeature))
    return { features: [], problems: problem('must be a list of features, as [ledger(), attribution()]') };
  const repeated = option.find(({ name }, at) => option.findIndex((other) => other.name === name) < at);
  return {
    features: option,
    problems: repeated === undefined ? [] : problem(`lists ${repeated.name}() twice`),
  };
}

function isFeature(value: unknown): value is FeatureModule {
  return isObject(value) && isFeatureName(value.name) && typeof value.configure === 'function';
}
