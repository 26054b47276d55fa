/** The types of entries of the settings `ALIASES` and `PROVIDERS`, as hosts write them. */

/** One model of an alias, and when to use it. */
export interface AliasStep {
  /**
   * `<provider>/<model>`, or a bare name (docs/routing.md#bare-names); not another alias. `<provider>/*` passes the
   * requested name on; elsewhere `*` stands for what the alias's one `*` matched. Required.
   */
  readonly model: string;
  /** Its share of the requests that try it first, from 0 up. Default: 0. */
  readonly weight?: number | undefined;
  /**
   * Seconds until its first output, or until a non-streaming response is complete, above 0 and at most 86,400. Default:
   * no limit besides those of the request.
   */
  readonly timeout_seconds?: number | undefined;
  /**
   * Fields of Chat Completions that replace those of the request body; null removes a field. Not `model`, `models`,
   * `route`, `agent_id` or `stream`. Turns passthrough off (docs/messages-and-responses.md#passthrough).
   */
  readonly set?: Readonly<Record<string, unknown>> | undefined;
  /** Refusals that also move on to the next step. */
  readonly on?: readonly ('context_length' | 'content_filter')[] | undefined;
  /**
   * The API for chat requests, at a provider that has both. Default: as the provider's models need
   * (docs/request-translation.md#chat-through-responses).
   */
  readonly api?: 'chat' | 'responses' | undefined;
}

/**
 * A credential that is made. AWS: requests are signed, with a session of the role if there is one; the host tells region and service, or
 * they are given. Google: tokens of the service account whose key the secret has. Entra ID: tokens of an application.
 */
type EntryAuth = EntryAwsAuth | { readonly google: string } | EntryEntraAuth;

interface EntryEntraAuth {
  readonly entra: {
    readonly tenant_id: string;
    readonly client_id: string;
    readonly client_secret?: string | undefined;
    readonly client_certificate?: string | undefined;
    readonly authority?: string | undefined;
  };
}

interface EntryAwsAuth {
  readonly aws: {
    readonly access_key_id: string;
    readonly secret_access_key: string;
    readonly session_token?: string | undefined;
    readonly role_arn?: string | undefined;
    readonly region?: string | undefined;
    readonly service?: string | undefined;
  };
}

/** A provider with an API that is compatible with OpenAI's. */
export interface ProviderEntry {
  /**
   * The API's address, up to where `/chat/completions` follows; it may end in a version (`/v1`, `/v1beta`):
   * `https://api.groq.com/openai/v1`. Required.
   */
  readonly base_url: string;
  /**
   * The name of a service binding through which it is called: a VPC service
   * (docs/providers.md#a-server-in-a-network-of-your-own), or another Worker. Default: over the network.
   */
  readonly binding?: string | undefined;
  /**
   * The name of the secret with its key, in the environment or in the option `secrets`. No provider gets a secret of
   * Weir's own: `ADMIN_TOKEN`, `USER_HASH_KEY`, `ALERT_URL` and `ALERT_SECRET` are refused, also in `headers` and
   * `query`.
   */
  readonly api_key?: string | undefined;
  /**
   * Makes the credential in place of `api_key`, such as `{"aws": {"access_key_id": "NAME", "secret_access_key":
   * "NAME"}}` (docs/clouds.md#credentials-that-are-made). Values but for role, region and service are names of secrets.
   */
  readonly auth?: EntryAuth | undefined;
  /** The profile whose rules for requests apply (docs/models.md#profiles). Default: the one of its host, or `tolerant`. */
  readonly like?: string | undefined;
  /** `false` for a server that refuses `stream_options`. */
  readonly stream_usage?: boolean | undefined;
  /**
   * The most output tokens a second of one request at a server that stops when its connection closes; `false`: it goes
   * on (docs/providers.md#when-a-connection-closes).
   */
  readonly stops_on_close?: number | false | undefined;
  /**
   * The server has the Responses API itself, so Responses requests pass through
   * (docs/messages-and-responses.md#passthrough). Default: only at the profile's own hosts.
   */
  readonly responses?: boolean | undefined;
  /**
   * The API for all chat requests (docs/request-translation.md#chat-through-responses); `bedrock-converse` where `like`
   * names the cloud with it (docs/providers.md#aws-bedrock). Default: as the provider's models need.
   */
  readonly api?: 'chat' | 'responses' | 'bedrock-converse' | undefined;
  /**
   * The guardrail of each request (docs/providers.md#aws-bedrock), with `"api": "bedrock-converse"`:
   * `{"guardrailIdentifier": "…", "guardrailVersion": "1"}`.
   */
  readonly guardrailConfig?: Readonly<Record<string, unknown>> | undefined;
  /**
   * The server's names for fields of the chat body: `{"seed": "random_seed"}`. A value that already has that name wins
   * (docs/providers.md#quirks-as-data).
   */
  readonly rename?: Readonly<Record<string, string>> | undefined;
  /** Fields of the chat body that the server does not support: they are dropped and reported, even if they would change the output. */
  readonly drop?: readonly string[] | undefined;
  /** The server's names for message roles: `{"developer": "system"}`. */
  readonly roles?: Readonly<Record<string, string>> | undefined;
  /** The server's words for `reasoning_effort`, which replace the profile's: `{"minimal": "low"}`. */
  readonly effort?: Readonly<Record<string, string>> | undefined;
  /** The form in which reasoning of earlier outputs goes back. */
  readonly reasoning?: 'reasoning_content' | 'reasoning' | 'both' | 'thinking_parts' | 'none' | undefined;
  /**
   * `<maker>/<model>` by names of the server's, such as those of deployments: families, facts and prices are the
   * maker's (docs/providers.md#names-of-models).
   */
  readonly models?: Readonly<Record<string, string>> | undefined;
  /** Headers of each request. The value `$NAME` stands for the secret NAME. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Query parameters of each URL, such as Azure's `api-version`. The value `$NAME` stands for the secret NAME. */
  readonly query?: Readonly<Record<string, string>> | undefined;
}
