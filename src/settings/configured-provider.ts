/** A provider as a deployment has it: its addresses, its secrets, and what of it serves a model. */
import type { UnreadableSecret } from '../canonical/secret.ts';
import type { Auth } from '../credentials/credentials.ts';
import type { Resale } from '../metering/pricing/resale-prices.ts';
import type { Door, MakerModel, Provider } from '../providers/provider.ts';

/** A provider that this deployment can call. */
export interface ConfiguredProvider {
  readonly provider: Provider;
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** `""` if no key is set: the server needs none, or the deployment forwards the caller's. */
  readonly apiKey: string;
  /** How its credential is made; null: it is `apiKey`. */
  readonly auth: Auth | null;
  /** The settings with the key and the base URL, for messages; null for the provider's default URL. */
  readonly keySetting: string;
  readonly urlSetting: string | null;
  /** Headers of every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Query parameters of every URL, such as Azure's `api-version`. */
  readonly query: Readonly<Record<string, string>>;
  /** Its key, or a secret of its headers or query, where it could not be read. Null: all were. */
  readonly unreadableKey: UnreadableSecret | null;
  readonly unreadableField: UnreadableSecret | null;
  /** Sends its requests through a service binding; null: over the network. */
  readonly fetch: ((input: Request | string, init?: RequestInit) => Promise<Response>) | null;
  /** The provider ids under which its prices are looked up, in order: its own, then that of the built-in provider with its host. */
  readonly priceIds: readonly string[];
  /** The APIs of a cloud: the first that serves a model applies. Empty: the provider has one. */
  readonly doors: readonly ConfiguredDoor[];
  /** `<maker>/<model>` by the operator's own names of models, such as those of deployments. */
  readonly models: Readonly<Record<string, string>>;
  /** The base URL to try when a refusal says that the model is not at this one; null: there is none. */
  readonly otherBaseUrl: string | null;
  /** A built-in provider, or an entry of `PROVIDERS` at the host of one. */
  readonly isKnownHost: boolean;
  /** A bare model name goes to an entry of `PROVIDERS` with the maker's id or host before it goes to this provider. */
  readonly yields: boolean;
}

/** One API of a cloud, with the addresses of this deployment. */
export interface ConfiguredDoor extends Pick<Door, 'serves'> {
  readonly configured: ConfiguredProvider;
}

/** What serves a model: the provider, or of a cloud the API for it. */
export interface ServingProvider extends ConfiguredProvider {
  /** The model's name at its maker, by which its family and facts are known. */
  readonly makerModel: string;
}

/** What of a provider serves a model. @param model its name at the provider */
export function servedBy(configured: ConfiguredProvider, model: string): ServingProvider {
  const makerModel = makerOf(configured, model)?.model ?? model;
  const door = configured.doors.find(({ serves }) => serves({ model, makerModel }));
  return { ...(door?.configured ?? configured), makerModel };
}

/** The maker of a model and its name there; null where the provider's name is all that is known. */
function makerOf({ models, provider }: ConfiguredProvider, model: string): MakerModel | null {
  const known = Object.hasOwn(models, model) ? models[model] : undefined;
  if (known === undefined) return provider.cloud?.makerOf(model) ?? null;
  const slash = known.indexOf('/');
  return { maker: known.slice(0, slash), model: known.slice(slash + 1) };
}

/** Whose prices apply to the models of providers that are not their makers, by the provider's id. */
export function resalesOf(providers: ReadonlyMap<string, ConfiguredProvider>): ReadonlyMap<string, Resale> {
  const resales = new Map<string, Resale>();
  for (const [id, configured] of providers) {
    const { models, provider } = configured;
    const named = Object.values(models).map((known) => known.slice(0, known.indexOf('/')));
    const makers = new Set([...named, ...(provider.cloud?.makers ?? [])]);
    if (makers.size > 0)
      resales.set(id, { makers: [...makers], makerOf: (model) => makerOf(configured, model) });
  }
  return resales;
}

/** The secret without which the provider cannot be called now; null: none. @param callerPays the caller sends the key */
export function missingSecret(
  { unreadableKey, unreadableField }: ConfiguredProvider,
  callerPays: boolean,
): UnreadableSecret | null {
  return (callerPays ? null : unreadableKey) ?? unreadableField;
}
