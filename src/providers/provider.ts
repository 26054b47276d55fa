/** What a provider is: data, and small functions for differences that data cannot express. Each provider has one file in this folder. */
import type { Shape } from '../canonical/chunk.ts';
import type { VendorTokens } from '../canonical/part.ts';
import type { TableRow } from '../fitting/rows.ts';
import type { ConvertedEmbeddings, EmbeddingsOptions } from '../protocols/gemini/embeddings.ts';
import type { RequestForm } from '../request-translation/translate.ts';
import type { JsonObject } from '../shared/json.ts';
import type { OwnName, PassthroughProtocol, ProtocolQuirks, UpstreamProtocol } from '../stream/types.ts';
import type { RefusalRules } from './refusals.ts';

interface ContextWindow {
  /** Globs over the provider's names. */
  readonly models: readonly string[];
  readonly tokens: number;
  readonly source: string;
  /** When the source was read. */
  readonly checked: string;
}

/**
 * A provider that Weir knows by name. `index.ts` lists all. It adds to a {@link Profile} the name and the settings of a deployment:
 *
 * ```ts
 * export const acme: Provider<'ACME_API_KEY' | 'ACME_BASE_URL'> = {
 *   ...compatibleProfile('acme', ['api.acme.example'], CHAT),
 *   name: 'Acme',
 *   apiKeySettings: ['ACME_API_KEY'],
 *   baseUrlSettings: ['ACME_BASE_URL'],
 *   defaultBaseUrl: 'https://api.acme.example/v1',
 * };
 * ```
 *
 * @typeParam Setting the names of its settings, from which the options of `weir()` follow
 */
export interface Provider<Setting extends string = string> extends Profile {
  /** The name in messages: `DeepSeek`. */
  readonly name: string;
  /** The settings with its key. The first that is set applies. */
  readonly apiKeySettings: readonly [Setting, ...Setting[]];
  /** The settings of a credential that is made, where no key is set. Absent: it has keys alone. */
  readonly auth?: AuthSettings<Setting>;
  /** The settings with its base URL. The first that is set applies. */
  readonly baseUrlSettings: readonly [Setting, ...Setting[]];
  /** The base URL if no setting is set; null: a setting is required. */
  readonly defaultBaseUrl: string | null;
  /** What it has as a cloud, which sells models of several makers. `defaultBaseUrl` is then null. Absent: it is none. */
  readonly cloud?: Cloud<Setting>;
  /** Names under which other software knows it, to recognize a secret that no provider uses: `KIMI_API_KEY` is a key of Moonshot. */
  readonly otherNames?: readonly string[];
  /** Globs of the models that `GET /v1/models` lists, of all models that the provider lists; absent: all. */
  readonly listedModels?: readonly string[];
}

/** The settings of which a credential is made, and what it is. */
export type AuthSettings<Setting extends string = string> =
  | AwsSettings<Setting>
  | GoogleSettings<Setting>
  | EntraSettings<Setting>;

type AwsPart = 'accessKeyId' | 'secretAccessKey' | 'sessionToken' | 'role' | 'region';

/** A key of AWS, which signs. */
export interface AwsSettings<Setting extends string = string> extends Readonly<Record<AwsPart, Setting>> {
  readonly kind: 'aws';
}

type EntraPart = 'tenantId' | 'clientId' | 'secret' | 'certificate' | 'authority';

/** An application of Microsoft Entra ID, with a secret or a certificate. */
export interface EntraSettings<Setting extends string = string> extends Readonly<Record<EntraPart, Setting>> {
  readonly kind: 'entra';
}

/** A service account of Google. */
export interface GoogleSettings<Setting extends string = string> {
  readonly kind: 'google';
  /** The JSON of its key. */
  readonly key: Setting;
  /** The cloud's parameter that the key has, too. */
  readonly project: Setting;
}

/**
 * A provider that sells models of several makers. Its addresses follow from further settings, and the model decides by which of its APIs
 * it is called:
 *
 * ```ts
 * cloud: {
 *   parameters: [{ setting: 'ACME_REGION', form: /^[a-z]+$/, what: 'a region such as north', isOfHost: true }],
 *   hosts: { api: { setting: 'ACME_BASE_URL', origin: ({ ACME_REGION }) => `https://${ACME_REGION}.acme.example` } },
 *   doors: [
 *     { serves: ({ makerModel }) => makerModel.startsWith('claude-'), host: 'api', path: () => '/anthropic', profile: CLAUDE },
 *     { serves: () => true, host: 'api', path: () => '/openai/v1', profile: OPENAI },
 *   ],
 *   makers: ['anthropic'],
 *   makerOf: (model) => (model.startsWith('anthropic.') ? { maker: 'anthropic', model: model.slice(10) } : null),
 * }
 * ```
 *
 * @typeParam Setting the names of its settings
 */
export interface Cloud<Setting extends string = string> {
  /** Its settings besides the key. */
  readonly parameters: readonly CloudParameter<Setting>[];
  readonly hosts: Readonly<Record<string, CloudHost<Setting>>>;
  /** The first that serves a model applies. The last one serves every model, and lists all. */
  readonly doors: readonly [Door, ...Door[]];
  /** The ids of the makers whose prices apply where the cloud's own is not known. */
  readonly makers: readonly string[];
  /** The maker of a model and its name there, by which its family, facts and price are known; null: unknown. */
  readonly makerOf: (model: string) => MakerModel | null;
  /** A refusal that says that the model is below `otherPath` of its door. Absent: no door has one. */
  readonly otherPathRefusal?: RegExp;
  /** A binding that turns the cloud on without a key, and with its own APIs. Absent: none does. */
  readonly binding?: CloudBinding;
  /** The setting with the models behind the operator's own names: `{"my-gpt": "openai/gpt-6.1-terra"}`. Absent: there are none. */
  readonly modelsSetting?: Setting;
}

/** A binding of models. Its doors need no host. */
export interface CloudBinding {
  readonly name: string;
  /** The parameter with the name of the gateway that requests go through. The others are not needed. */
  readonly gateway: string;
  readonly doors: readonly [Pick<Door, 'serves' | 'profile'>, ...Pick<Door, 'serves' | 'profile'>[]];
  /** The models that `GET /v1/models` lists: the binding has no list that is fast enough. */
  readonly models: readonly string[];
}

/** A model as its maker names it. */
export interface MakerModel {
  /** The provider id of the maker, which may be of no provider here. */
  readonly maker: string;
  readonly model: string;
  /** The name under which the cloud's own prices are. Absent: `model`. */
  readonly ownName?: string;
  /** What the cloud asks for it at most, as a multiple of the maker's price. Absent: 1. */
  readonly priceFactor?: number;
}

/** The values of a cloud's parameters, by their settings. */
export type CloudValues = Readonly<Record<string, string>>;

interface CloudParameter<Setting extends string> {
  readonly setting: Setting;
  readonly form: RegExp;
  /** What it must be, for messages: `a region such as us-east-1`. */
  readonly what: string;
  /** Its value if it is not set; absent: it is required. */
  readonly byDefault?: string;
  /** Only hosts contain it, so it is not needed where settings replace all of them. */
  readonly isOfHost: boolean;
  /** Needed only where the credential is made, of which it may be a part. Absent: always. */
  readonly isOfAuth?: true;
}

interface CloudHost<Setting extends string> {
  /** The setting that replaces scheme and host. */
  readonly setting: Setting;
  /** The name of the service in AWS's signatures. Absent: it is no service of AWS's. */
  readonly awsService?: string;
  readonly origin: (values: CloudValues) => string;
}

/** One API of a cloud. */
export interface Door {
  readonly serves: (names: ModelNames) => boolean;
  readonly host: string;
  /** The path before those of the profile's endpoints. */
  readonly path: (values: CloudValues) => string;
  /** Where the same API is for other models, which a refusal may ask for; absent: nowhere. */
  readonly otherPath?: string;
  readonly profile: Profile;
  /** Headers of every request. Absent: none. */
  readonly headers?: (values: CloudValues) => Readonly<Record<string, string>>;
}

interface ModelNames {
  /** The name at the provider. */
  readonly model: string;
  /** The name at its maker. */
  readonly makerModel: string;
}

/**
 * How an API behaves, at whichever host. An entry of `PROVIDERS` gets the profile of its host, or the one that it names in `like` (Q9).
 * `compatibleProfile` makes one for an API like OpenAI's; most files add only a table of what the API accepts.
 */
export interface Profile {
  /** The id in `like`. A provider's id is also the first part of its models' addresses: `deepseek/deepseek-chat`. */
  readonly id: string;
  /** The hosts with this API. */
  readonly hosts: readonly string[];
  /** It may send nothing for so long within a stream. The idle timeout, where no setting has it, is then not shorter. Absent: unknown. */
  readonly longestSilenceMs?: number;
  /** Further hosts, whose names operators choose. Prices and other APIs are not theirs. */
  readonly hostPattern?: RegExp;
  /** The profile of an entry of `PROVIDERS` that names the models behind its own names (Q17). Absent: the same. */
  readonly ofNamedModels?: Profile;
  /** Base URLs that contain the API's version before their end. Then the version at the start of each path is omitted. */
  readonly versionedBase?: RegExp;
  readonly endpoints: { readonly [R in Route]?: Endpoint };
  /** Chat requests through Responses. Absent: chat requests go to the chat endpoint. */
  readonly responses?: ResponsesApi;
  /**
   * Further APIs of the host, by the name in `api` of an entry of `PROVIDERS`: the entry has the profile that this gives.
   * @param guardrail the entry's `guardrailConfig`
   */
  readonly otherApis?: Readonly<Record<string, (guardrail?: JsonObject) => Profile>>;
  /** The client protocols besides Chat Completions that the API has itself. Their requests and events pass through unchanged. */
  readonly passthrough?: { readonly [P in PassthroughProtocol]?: PassthroughEndpoint };
  /** Names of the API that some of its clients read in place of the canonical ones. These clients get both. */
  readonly ownNames?: readonly OwnNameRow[];
  /** Differences in responses. Absent: none. */
  readonly quirks?: ProtocolQuirks;
  /** The headers with a credential; absent: `authorization: Bearer <secret>`. */
  readonly credential?: (secret: string) => Readonly<Record<string, string>>;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The response's header with the provider's id of the run, for the record. Absent: none has it. */
  readonly runIdHeader?: string;
  /** Where the API lists its models; absent: `/models`, in OpenAI's form. */
  readonly models?: ModelsEndpoint;
  /** What is known of models whose facts the API's list lacks. The first row that matches applies. */
  readonly modelTraits?: readonly ModelTraitsRow[];
  /** Globs of the names that its maker gives to its own models. A request may name these without `<provider>/`. Absent: none. */
  readonly ownModels?: readonly string[];
  /** How its keys begin, to recognize one that was sent to Weir. Absent: its keys cannot be told from others. */
  readonly keyPrefixes?: readonly string[];
  /** Globs of the models that embed and do not chat. */
  readonly embeddingModels?: readonly string[];
  /** Counts a prompt's tokens without charge. Absent: Weir estimates them. */
  readonly tokenCounter?: TokenCounter;
  /** The last change of a body, after everything that depends on its fields. Absent: none. */
  readonly sentBody?: (body: JsonObject) => JsonObject;
  /** Headers in place of fields that {@link sentBody} removes, from the body that still has them. Absent: none. */
  readonly sentHeaders?: (body: JsonObject) => Readonly<Record<string, string>>;
  /** How to recognize what a refusal is about, by the provider's code and message. */
  readonly refusals?: RefusalRules;
  /** The upper bound of the tokens of one image of any size; absent: 16,384. Budgets of keys depend on it. */
  readonly imageTokens?: number;
  /**
   * The largest context windows, with betas: a longer prompt is refused, so that none is billed. A model without a row may have the largest
   * of all. Budgets of keys depend on it.
   */
  readonly windows?: readonly ContextWindow[];
  /** Globs of the models that search the web or read pages themselves. Their prompts have no upper bound. */
  readonly searchingModels?: readonly string[];
  /**
   * Globs of the models whose non-streaming responses contain all billed output, with no hidden reasoning. Absent: none. If such a
   * response reports no usage, it is charged by its text (G3).
   */
  readonly visibleOutputModels?: readonly string[];
  /**
   * It ends a streamed request, and bills no more of it, when the connection closes. The value is the most output
   * tokens that it writes in a second for one choice. Absent: hard budgets take it for one that may go on. No
   * provider's documents state both (2026-11-23), so operators do, of servers they know.
   */
  readonly stopsOnClose?: number;
  /**
   * It is known, by its documents or by a probe, to go on with a streamed request, and to bill it, when the connection closes. Absent:
   * budgets of the mode `running` charge such a stream by what was received (G3). An entry of `PROVIDERS` has no date.
   */
  readonly goesOnAfterClose?: { readonly source: string; readonly checked?: string };
  /** Its encrypted reasoning begins so, and no other provider can read it. Absent: its beginning says nothing. */
  readonly reasoningPrefix?: string;
  /** It bills every model in `fallbacks` that began to respond. Absent: it bills only the one that responds. */
  readonly billsFallbacks?: true;
  /** The tokens that a vendor event (`x_*`) reports, or null. Absent: no event reports any. */
  readonly vendorTokens?: (type: string, event: JsonObject) => VendorTokens | null;
}

/** One of the API's own names, and the clients that read it. All other clients get the canonical names alone. */
export interface OwnNameRow {
  readonly name: OwnName;
  /** How the clients call themselves in `user-agent`. */
  readonly readers: readonly string[];
}

/** The endpoints that a client can call: chat, legacy completions, fill-in-the-middle, Mistral's agents, and embeddings. */
export type Route = 'chat' | 'completions' | 'fim' | 'agents' | 'embeddings';

/** The shape of each route's response, for every provider protocol. */
export const ROUTE_SHAPES: { readonly [R in Route]: Shape } = {
  chat: 'chat',
  completions: 'text',
  fim: 'chat',
  agents: 'chat',
  // Embeddings are no completions and have no chunks.
  embeddings: 'chat',
};

/** Where a provider serves a route, what it accepts there, and how its response is read. */
export interface Endpoint {
  /** The path and query after the base URL, for a request in OpenAI's form. */
  readonly path: (body: JsonObject) => string;
  readonly request: RequestForm;
  readonly protocol: UpstreamProtocol;
  /** Writes a response of the embeddings route in OpenAI's form; null if it has no embeddings. Absent: it has that form. */
  readonly convertEmbeddings?: (text: string, options: EmbeddingsOptions) => ConvertedEmbeddings | null;
}

/** Where a provider serves a client protocol itself. */
export interface PassthroughEndpoint {
  /** The path and query after the base URL, or what makes them of the model and `stream`. */
  readonly path: string | ((fields: JsonObject) => string);
  /** Reads the response for metering. */
  readonly protocol: UpstreamProtocol;
  /**
   * By which the thinking, the effort and the sampling that the model would refuse are changed, and reported (Q14, Q5). Absent: what its
   * models refuse is not known.
   */
  readonly rows?: readonly TableRow[];
  /** Changes the body so that the provider omits the text of reasoning. Absent: the provider cannot omit it. */
  readonly hideReasoning?: (body: JsonObject, model: string) => JsonObject;
  /** Whether the model returns its reasoning encrypted on request. Absent: none does, and a request for it may be refused. */
  readonly encryptsReasoning?: (model: string) => boolean;
  /** Whether the model refuses a step of calls that has no signature. Absent: none does. */
  readonly needsSignatures?: (model: string) => boolean;
}

/** How a provider serves chat requests through Responses. */
export interface ResponsesApi {
  /** The day on which the families were last compared with their sources. Absent: unknown. */
  readonly checked?: string;
  readonly endpoint: Endpoint;
  /** The first row whose globs match the model holds. A model that no row matches is called through chat. */
  readonly families: readonly ApiFamily[];
  /** Fields that only chat accepts: one of them keeps a request of a `prefer_responses` family on chat. */
  readonly chatOnly: readonly string[];
}

/** Which API serves the chat requests of a model family. */
export interface ApiFamily {
  readonly models: readonly string[];
  /**
   * - `chat`: always chat.
   * - `responses_only`: always Responses.
   * - `prefer_responses`: Responses where the request has tools, requests reasoning or carries reasoning back, unless it has a field that
   *   only chat accepts.
   */
  readonly api: 'chat' | 'prefer_responses' | 'responses_only';
  /** The efforts with which chat accepts function tools; `absent` is a request without one. No key: it accepts them with every effort. */
  readonly toolsOnChat?: readonly string[];
}

interface TokenCounter {
  /** The path and query after the base URL. */
  readonly path: (model: string) => string;
  /** @param body the request as it would be sent to the model */
  readonly request: (body: JsonObject, model: string) => JsonObject;
  readonly read: (response: JsonObject) => number | undefined;
  /** It refuses betas, also those that the API takes. */
  readonly refusesBetas?: true;
}

interface ModelsEndpoint {
  /** The path and query after the base URL. */
  readonly path: string;
  /** @returns null if the response is no list. Absent: it has OpenAI's form. */
  readonly read?: (response: JsonObject) => readonly ListedModel[] | null;
}

/** A model in a provider's list, with what the list says of it. */
export interface ListedModel extends ModelTraits {
  readonly id: string;
  /** In seconds since the epoch, 0 if unknown. */
  readonly created: number;
}

/** What `GET /v1/models` reports of a model. Absent: unknown. */
export interface ModelTraits {
  readonly contextTokens?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
  readonly supports?: { readonly [C in Capability]?: boolean | undefined };
}

export const CAPABILITIES = ['tools', 'reasoning', 'images', 'structured_output'] as const;
export type Capability = (typeof CAPABILITIES)[number];

/** Traits of some models of one provider, with their source, as prices have it. */
export interface ModelTraitsRow extends ModelTraits {
  /** Names or globs. */
  readonly models: readonly string[];
  /** Where they were read, and on which day. */
  readonly source: string;
  readonly checked: string;
}
