/** Reads the settings of credentials that are made: of built-in providers, and of entries of `PROVIDERS`. */
import { isUnreadable, type Secret, type UnreadableSecret } from '../canonical/secret.ts';
import type { AwsIdentity, AwsSettingNames } from '../credentials/aws.ts';
import type { AwsScope } from '../credentials/aws-signature.ts';
import type { Auth } from '../credentials/credentials.ts';
import type { EntraAuth, EntraSettingNames } from '../credentials/entra.ts';
import { readServiceAccount } from '../credentials/google.ts';
import { readPem } from '../credentials/jwt.ts';
import type { AuthSettings, AwsSettings, EntraSettings, GoogleSettings } from '../providers/provider.ts';
import { AWS_REGION } from '../shared/aws-region.ts';
import { isObject, type JsonObject, objectOf, readText } from '../shared/json.ts';
import type { SettingProblem, SettingsReader } from './reader.ts';

/** A credential that is made, as a deployment has it. */
export interface ReadAuth {
  /** The setting that stands for it in messages. */
  readonly setting: string;
  /** A secret of it that could not be read; null: all were. */
  readonly unreadable: UnreadableSecret | null;
  /**
   * Makes the credentials of an API; null: what it signs with is not known.
   * @param url of the API
   * @param service its name in AWS's signatures. Absent: the host tells it
   */
  readonly at: (url: string, service?: string) => Auth | null;
  /** Values that it has of the cloud's parameters, by their settings. */
  readonly parameters: Readonly<Record<string, string>>;
  /** What is missing where `at` returns null. */
  readonly missing: SettingProblem;
}

/** Whether it is used, or only its settings are named. */
interface AuthUse {
  /** The setting of a key, which takes precedence; null: none is set. */
  readonly key: string | null;
  /**
   * Settings that show that the deployment wants the provider: a mistake is then a problem. Other code of the Worker
   * may have keys of AWS.
   */
  readonly isWanted: boolean;
}

/** The credential of a built-in provider; null: it has none, or a setting is missing. */
export function readAuth(reader: SettingsReader, settings: AuthSettings, use: AuthUse): ReadAuth | null {
  switch (settings.kind) {
    case 'aws':
      return readAws(reader, settings, use);
    case 'google':
      return readGoogle(reader, settings, use);
    case 'entra':
      return readEntra(reader, settings, use);
  }
}

function readGoogle(
  reader: SettingsReader,
  { key: setting, project }: GoogleSettings,
  { key, isWanted }: AuthUse,
): ReadAuth | null {
  const json = reader.secret(setting);
  if (json === null) return null;
  const unused = (message: string) => {
    reader.overridden.push({ setting, message });
    return null;
  };
  if (key !== null) return unused(`is not used, because ${key} is set`);
  const account = typeof json === 'string' ? readServiceAccount(json, setting) : null;
  if (typeof json === 'string' && account === null) {
    // Other code of the Worker may have a secret of this name.
    if (!isWanted) return unused(`is not used, because it is not ${SERVICE_ACCOUNT}`);
    reader.invalid(setting, `must be ${SERVICE_ACCOUNT}`);
    return null;
  }
  return {
    setting,
    unreadable: isUnreadable(json) ? json : null,
    at: () => account && { kind: 'google', account },
    // While the key cannot be read, nothing is called.
    parameters: { [project]: account === null ? 'unknown' : (account.projectId ?? '') },
    missing: { setting, message: `must be ${SERVICE_ACCOUNT}` },
  };
}

function readEntra(
  reader: SettingsReader,
  settings: EntraSettings,
  { key, isWanted }: AuthUse,
): ReadAuth | null {
  const tenantId = reader.text(settings.tenantId);
  const clientId = reader.text(settings.clientId);
  const secret = reader.secret(settings.secret);
  const certificate = reader.secret(settings.certificate);
  const authority = reader.text(settings.authority);
  const setting = secret === null ? settings.certificate : settings.secret;
  if (secret === null && certificate === null) return null;
  const unused = (message: string, name = setting) => {
    reader.overridden.push({ setting: name, message });
    return null;
  };
  if (key !== null) return unused(`is not used, because ${key} is set`);
  const missing =
    tenantId === undefined ? settings.tenantId : clientId === undefined ? settings.clientId : null;
  if (missing !== null && !isWanted) return unused(`is not used, because ${missing} is not set`);
  if (missing !== null) reader.invalid(missing, `must be set, because ${setting} is`);
  if (secret !== null && certificate !== null)
    unused(`is not used, because ${settings.secret} is set`, settings.certificate);
  const names = { tenantId: settings.tenantId, clientId: settings.clientId, credential: setting };
  const problem = entraProblem({ tenantId, clientId, secret, certificate }, names);
  if (problem !== null) reader.invalid(problem.setting, problem.message);
  const base = reader.url(settings.authority, authority ?? ENTRA_AUTHORITY);
  if (tenantId === undefined || clientId === undefined || problem !== null || base === undefined) return null;
  return {
    ...entraAuth({ tenantId, clientId, secret, certificate }, names, base),
    parameters: {},
    missing: { setting, message: 'must be set' },
  };
}

const ENTRA_AUTHORITY = 'https://login.microsoftonline.com';
const TENANT = /^[A-Za-z0-9][A-Za-z0-9.-]{0,127}$/;
const CLIENT = /^[A-Za-z0-9-]{1,64}$/;
/** The API by the paths of deployments takes this one alone; `/openai/v1` and Claude on Foundry take both. */
const DEPLOYMENTS_SCOPE = 'https://cognitiveservices.azure.com/.default';
const V1_SCOPE = 'https://ai.azure.com/.default';

interface EntraParts {
  readonly tenantId: string | undefined;
  readonly clientId: string | undefined;
  readonly secret: Secret;
  readonly certificate: Secret;
}

function entraProblem(
  { tenantId, clientId, secret, certificate }: EntraParts,
  names: EntraSettingNames,
): SettingProblem | null {
  if (tenantId !== undefined && !TENANT.test(tenantId))
    return { setting: names.tenantId, message: 'must be the id or the domain of a tenant' };
  if (clientId !== undefined && !CLIENT.test(clientId))
    return { setting: names.clientId, message: 'must be the id of an application' };
  if (secret !== null || typeof certificate !== 'string') return null;
  const isWhole = ['PRIVATE KEY', 'CERTIFICATE'].every((label) => readPem(certificate, label) !== null);
  const message = 'must be the PEM text of a private key (PKCS #8) and of its certificate';
  return isWhole ? null : { setting: names.credential, message };
}

function entraAuth(
  { tenantId = '', clientId = '', secret, certificate }: EntraParts,
  settings: EntraSettingNames,
  authority: string,
): Pick<ReadAuth, 'setting' | 'unreadable' | 'at'> {
  const textOf = (value: Secret) => (typeof value === 'string' ? value : null);
  const used = secret ?? certificate;
  const clientOf = (scope: string): EntraAuth => ({
    kind: 'entra',
    client: {
      ...{ tenantId, clientId, authority, scope, settings },
      secret: textOf(secret),
      certificate: secret === null ? textOf(certificate) : null,
    },
  });
  const [v1, deployments] = [clientOf(V1_SCOPE), clientOf(DEPLOYMENTS_SCOPE)];
  return {
    setting: settings.credential,
    unreadable: isUnreadable(used) ? used : null,
    at: (url) => (/\/openai\/deployments(?:\/|$)/.test(new URL(url).pathname) ? deployments : v1),
  };
}

/** What a service account's secret must be. */
const SERVICE_ACCOUNT = 'the JSON of a key of a service account';

function readAws(reader: SettingsReader, settings: AwsSettings, { key, isWanted }: AuthUse): ReadAuth | null {
  const { accessKeyId, secretAccessKey, sessionToken, role, region } = settings;
  const secrets = { id: reader.secret(accessKeyId), key: reader.secret(secretAccessKey) };
  const token = reader.secret(sessionToken);
  const roleArn = reader.text(role);
  const regionName = reader.text(region);
  if (secrets.id === null && secrets.key === null) return null;
  const unused = (message: string) => {
    reader.overridden.push({ setting: secrets.id === null ? secretAccessKey : accessKeyId, message });
    return null;
  };
  if (key !== null) return unused(`is not used, because ${key} is set`);
  const needed =
    secrets.id === null ? accessKeyId : secrets.key === null ? secretAccessKey : regionName ? null : region;
  if (needed !== null && !isWanted) return unused(`is not used, because ${needed} is not set`);
  if (needed === accessKeyId || needed === secretAccessKey) {
    reader.invalid(needed, `must be set, because ${secrets.id === null ? secretAccessKey : accessKeyId} is`);
    return null;
  }
  const names = { accessKeyId, secretAccessKey, sessionToken, role, region, service: region };
  const problem = awsProblem({ id: secrets.id, key: secrets.key, token, role: roleArn }, names);
  if (problem !== null) {
    reader.invalid(problem.setting, problem.message);
    return null;
  }
  return awsAuth({ id: secrets.id, key: secrets.key, token, role: roleArn }, names, { region: regionName });
}

interface AwsParts {
  readonly id: Secret;
  readonly key: Secret;
  readonly token: Secret;
  readonly role: string | undefined;
}

function awsAuth(
  { id, key, token, role }: AwsParts,
  settings: AwsSettingNames,
  given: { readonly region: string | undefined; readonly service?: string | undefined },
): ReadAuth {
  const textOf = (secret: Secret) => (typeof secret === 'string' ? secret : '');
  const keys = {
    accessKeyId: textOf(id),
    secretAccessKey: textOf(key),
    sessionToken: token === null ? null : textOf(token),
  };
  const identity: AwsIdentity = { keys, role: role ?? null, settings };
  return {
    setting: settings.accessKeyId,
    unreadable: [id, key, token].find(isUnreadable) ?? null,
    parameters: {},
    missing: {
      setting: settings.region,
      message: `must be set, because ${settings.accessKeyId} is: a region such as us-east-1`,
    },
    at: (url, ofApi) => {
      const told = scopeOfHost(new URL(url).hostname);
      const region = given.region ?? told?.region;
      const service = given.service ?? ofApi ?? told?.service;
      if (region === undefined || service === undefined) return null;
      return { kind: 'aws', identity, scope: { region, service } };
    },
  };
}

/** Printable ASCII without spaces: these are sent in headers. */
const WORD = /^[\x21-\x7e]{1,8192}$/;
const ROLE_ARN = /^arn:[a-z-]{3,16}:iam::\d{12}:role\/[\w+=,.@/-]{1,576}$/;

/** What is wrong with the values, without them. */
function awsProblem(
  { id, key, token, role }: AwsParts,
  names: AwsSettingNames,
): { readonly setting: string; readonly message: string } | null {
  const isWrong = (secret: Secret) => typeof secret === 'string' && !WORD.test(secret);
  const message = 'must be one word of printable ASCII';
  if (isWrong(id)) return { setting: names.accessKeyId, message };
  if (isWrong(key)) return { setting: names.secretAccessKey, message };
  if (isWrong(token)) return { setting: names.sessionToken, message };
  if (role !== undefined && !ROLE_ARN.test(role))
    return { setting: names.role, message: 'must be the ARN of a role: arn:aws:iam::123456789012:role/weir' };
  return null;
}

const AWS_HOST =
  /(?:^|\.)([a-z][a-z0-9-]{1,62})\.([a-z]{2,4}(?:-[a-z]{2,9}){1,3}-\d{1,2})\.(?:vpce\.)?(?:amazonaws\.(?:com|com\.cn|eu)|api\.aws|on\.aws)$/;

/** The region and the service that one of AWS's hosts names, as in `bedrock-runtime.us-east-1.amazonaws.com`; null: it is no such host. */
function scopeOfHost(host: string): AwsScope | null {
  const [, label, region] = AWS_HOST.exec(host) ?? [];
  if (label === undefined || region === undefined) return null;
  // Data planes and function URLs are signed for under the name of their service.
  return { region, service: label.replace(/-fips$/, '').replace(/-(?:runtime|url)$/, '') };
}

/** What the reader of an entry offers. */
interface EntryPorts {
  /** The value of the secret with this name; undefined: it is reported. */
  secret(field: string, name: string | undefined): NonNullable<Secret> | undefined;
  invalid(message: string): undefined;
}

const AWS_FIELDS = ['access_key_id', 'secret_access_key', 'session_token', 'role_arn', 'region', 'service'];
const SECRET_NAME = /^[A-Z][A-Z0-9_]*$/;
const SERVICE = /^[a-z][a-z0-9-]{1,63}$/;

/** What `auth` of an entry must be. */
const AUTH_FORM =
  '{"aws": {"access_key_id": "NAME", "secret_access_key": "NAME"}} or {"google": "NAME"} or {"entra": {"tenant_id": "…", "client_id": "…", "client_secret": "NAME"}}, with names of secrets';

interface EntryAuthRead extends Pick<ReadAuth, 'setting' | 'unreadable'> {
  /** Null: a secret of it could not be read. */
  readonly auth: Auth | null;
}

/** `auth` of an entry of `PROVIDERS`; null: it has none; undefined: it is invalid, and reported. */
export function readEntryAuth(
  reader: EntryPorts,
  id: string,
  auth: unknown,
  baseUrl: string,
): EntryAuthRead | null | undefined {
  if (auth === undefined) return null;
  if (!isObject(auth) || Object.keys(auth).length !== 1) return reader.invalid(`auth must be ${AUTH_FORM}`);
  if (isObject(auth.aws)) return readEntryAws(reader, id, auth.aws, baseUrl);
  if (isObject(auth.entra)) return readEntryEntra(reader, id, auth.entra, baseUrl);
  const name = readText(auth.google);
  if (name === undefined) return reader.invalid(`auth must be ${AUTH_FORM}`);
  if (!SECRET_NAME.test(name))
    return reader.invalid('auth.google must be the name of a secret, such as GOOGLE_SERVICE_ACCOUNT');
  const json = reader.secret('auth.google', name);
  if (json === undefined) return undefined;
  if (isUnreadable(json)) return { setting: name, unreadable: json, auth: null };
  const account = readServiceAccount(json, name);
  if (account === null) return reader.invalid(`auth.google: ${name} must be ${SERVICE_ACCOUNT}`);
  return { setting: name, unreadable: null, auth: { kind: 'google', account } };
}

const ENTRA_FIELDS = ['tenant_id', 'client_id', 'client_secret', 'client_certificate', 'authority'];

/** The ids are written as they are, or as the names of secrets. */
function readEntryEntra(
  reader: EntryPorts,
  id: string,
  entra: JsonObject,
  baseUrl: string,
): EntryAuthRead | undefined {
  const unknown = Object.keys(entra).find((field) => !ENTRA_FIELDS.includes(field));
  if (unknown !== undefined) return reader.invalid(`auth.entra accepts only ${ENTRA_FIELDS.join(', ')}`);
  const read = (field: string) => readText(entra[field]);
  const idOf = (field: string): NonNullable<Secret> | undefined => {
    const text = read(field);
    if (text === undefined) return reader.invalid(`auth.entra needs ${field}`);
    return SECRET_NAME.test(text) ? reader.secret(`auth.entra.${field}`, text) : text;
  };
  const field = read('client_secret') === undefined ? 'client_certificate' : 'client_secret';
  const name = read(field);
  if (name === undefined) return reader.invalid('auth.entra needs client_secret');
  if (!SECRET_NAME.test(name))
    return reader.invalid(`auth.entra.${field} must be the name of a secret, such as AZURE_CLIENT_SECRET`);
  const tenantId = idOf('tenant_id');
  const clientId = idOf('client_id');
  const secret = reader.secret(`auth.entra.${field}`, name);
  const authority = read('authority') ?? ENTRA_AUTHORITY;
  if (tenantId === undefined || clientId === undefined || secret === undefined) return undefined;
  if (!/^https?:\/\/[^/]/.test(authority) || !URL.canParse(authority))
    return reader.invalid('auth.entra.authority must be an http(s) URL');
  const unreadable = [tenantId, clientId, secret].find(isUnreadable);
  if (unreadable !== undefined) return { setting: name, unreadable, auth: null };
  const isText = (value: NonNullable<Secret>) => (typeof value === 'string' ? value : undefined);
  const parts: EntraParts = {
    tenantId: isText(tenantId),
    clientId: isText(clientId),
    secret: field === 'client_secret' ? secret : null,
    certificate: field === 'client_secret' ? null : secret,
  };
  const place = (part: string) => `${part} of ${id} in PROVIDERS`;
  const names = { tenantId: place('tenant_id'), clientId: place('client_id'), credential: name };
  const problem = entraProblem(parts, names);
  if (problem !== null) return reader.invalid(`auth: ${problem.setting} ${problem.message}`);
  const made = entraAuth(parts, names, authority.replace(/\/$/, ''));
  return { setting: name, unreadable: null, auth: made.at(baseUrl) };
}

function readEntryAws(
  reader: EntryPorts,
  id: string,
  aws: JsonObject,
  baseUrl: string,
): EntryAuthRead | undefined {
  const unknown = Object.keys(aws).find((field) => !AWS_FIELDS.includes(field));
  if (unknown !== undefined) return reader.invalid(`auth.aws accepts only ${AWS_FIELDS.join(', ')}`);
  const isText = (value: unknown) => value === undefined || readText(value) !== undefined;
  if (!AWS_FIELDS.every((field) => isText(aws[field]))) return reader.invalid(`auth must be ${AUTH_FORM}`);
  const read = (field: string) => readText(aws[field]);
  const secretOf = (field: string, isOptional: boolean): Secret | undefined => {
    const name = read(field);
    if (name === undefined) return isOptional ? null : reader.invalid(`auth must be ${AUTH_FORM}`);
    if (!SECRET_NAME.test(name))
      return reader.invalid(`auth.aws.${field} must be the name of a secret, such as AWS_ACCESS_KEY_ID`);
    return reader.secret(`auth.aws.${field}`, name);
  };
  const parts = { id: secretOf('access_key_id', false), key: secretOf('secret_access_key', false) };
  const token = secretOf('session_token', true);
  if (parts.id === undefined || parts.key === undefined || token === undefined) return undefined;
  const place = (field: string) => `${field} of ${id} in PROVIDERS`;
  const names: AwsSettingNames = {
    accessKeyId: read('access_key_id') ?? '',
    secretAccessKey: read('secret_access_key') ?? '',
    sessionToken: read('session_token') ?? '',
    role: place('role_arn'),
    region: place(read('region') === undefined ? 'base_url' : 'region'),
    service: place(read('service') === undefined ? 'base_url' : 'service'),
  };
  const region = read('region');
  const service = read('service');
  if (region !== undefined && !AWS_REGION.test(region))
    return reader.invalid('auth.aws.region must be a region such as us-east-1');
  // An S3 signature is another one, which leaves out the body.
  if (service !== undefined && (!SERVICE.test(service) || service === 's3'))
    return reader.invalid('auth.aws.service must be the name of a service in signatures, such as bedrock');
  const values = { id: parts.id, key: parts.key, token, role: read('role_arn') };
  const problem = awsProblem(values, names);
  if (problem !== null) return reader.invalid(`auth: ${problem.setting} ${problem.message}`);
  const made = awsAuth(values, names, { region, service });
  const found = made.at(baseUrl);
  if (found === null)
    return reader.invalid(
      'auth.aws needs region and service, because the host of base_url does not name them',
    );
  return { setting: made.setting, unreadable: made.unreadable, auth: found };
}

/** The names of the secrets in `auth` of an entry, whether it is valid or not. */
export function secretsOfAuth(auth: unknown): readonly string[] {
  const { aws, google, entra } = objectOf(auth);
  const ofEntra = ['tenant_id', 'client_id', 'client_secret', 'client_certificate'].flatMap(
    (field) => readText(objectOf(entra)[field]) ?? [],
  );
  const ofAws = ['access_key_id', 'secret_access_key', 'session_token'].map((field) => objectOf(aws)[field]);
  const named = [...ofAws, google].flatMap((name) => readText(name) ?? []);
  return [...named, ...ofEntra.filter((name) => SECRET_NAME.test(name))];
}
