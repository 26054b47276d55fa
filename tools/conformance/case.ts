/** What a case of the suite is: what the provider sends, what the client must get, and what a client suffers otherwise. */

/** The columns of the score, in the order of the table. */
export const AREAS = {
  framing: 'Text and framing',
  ids: 'Ids and roles',
  calls: 'Tool calls',
  reasoning: 'Reasoning',
  finish: 'Finish reasons',
  usage: 'Usage',
  errors: 'Errors',
  truncation: 'Truncation',
  disconnects: 'Disconnects',
  latency: 'Added latency',
  holding: 'Chunks held back',
  buffering: 'Bytes buffered',
  metering: 'Metered and billed',
  contract: "Weir's contract",
} as const;
export type Area = keyof typeof AREAS;

/** The protocol that the provider speaks. */
export const UPSTREAMS = ['chat', 'messages', 'responses', 'gemini'] as const;
export type Upstream = (typeof UPSTREAMS)[number];

/** The protocol that the client speaks. */
export const CLIENTS = ['chat', 'messages', 'responses', 'gemini'] as const;
export type Client = (typeof CLIENTS)[number];

export type Finish = 'stop' | 'length' | 'content_filter' | 'tool_calls';

/** What the upstream does next. A text or bytes are one write. */
export type Step =
  | string
  | Uint8Array
  /** Waits until the client has this text, or for `HELD_BACK_MS`: then the gateway holds it back. */
  | { readonly until: string }
  | { readonly waitMs: number }
  /** A write that servers make only for requests with `stream_options.include_usage`. */
  | { readonly ifUsageAsked: string }
  /** Writes this text until so many bytes are sent or the connection ends. */
  | { readonly repeat: string; readonly bytes: number; readonly everyMs?: number };

export interface ExpectedCall {
  readonly name: string;
  /** JSON, which may be written in another way. A text that is no JSON is compared as it is. */
  readonly arguments: string;
  /** Where the provider gave one. */
  readonly id?: string;
}

/** Tokens. A count that is absent here is not compared. Null: the provider reported none, so it must not be 0. */
export interface ExpectedUsage {
  readonly prompt?: number | null;
  readonly completion?: number | null;
  readonly total?: number;
  readonly cached?: number;
  readonly reasoning?: number;
}

/** Each field that is present is checked, and nothing else. */
interface Expectation {
  /** Text of choice 0, or of each choice. */
  readonly text?: string | readonly string[];
  readonly reasoning?: string;
  readonly refusal?: string;
  readonly calls?: readonly ExpectedCall[];
  readonly finish?: Finish;
  readonly usage?: ExpectedUsage;
  /**
   * `complete`: the client sees a finished response. `failed`: it sees a failure: an error, an HTTP status or a broken connection.
   * `unfinished`: it sees a failure, or that the output reached its limit.
   */
  readonly outcome?: 'complete' | 'failed' | 'unfinished';
  readonly status?: readonly number[];
  /** A header of the response, and its value. */
  readonly header?: readonly [name: string, value: string];
  /** What an error's message contains. */
  readonly message?: string;
  /** The body of the refusal is JSON with an error. */
  readonly isJsonError?: true;
  /** What no error's message contains. */
  readonly secret?: string;
  /** All chunks of a stream have one id; the response's id is the same in each event. */
  readonly hasOneId?: true;
  /** The role is there once for each choice. */
  readonly hasOneRole?: true;
  readonly hasOneFinish?: true;
  readonly hasOneUsage?: true;
  /** No chunk without choices: clients that did not ask for usage read `choices[0]` of each chunk. */
  readonly hasChoicesAlways?: true;
  /** No finish reason is "", which some clients take for the end. */
  readonly hasNoEmptyFinish?: true;
  /** Blocks of a Messages stream. */
  readonly hasFewBlocks?: number;
  /** The response has this text somewhere, such as a signature. */
  readonly contains?: string;
  /** Ids of calls are there, and no two are equal. */
  readonly hasCallIds?: true;
  /** A call's name is on one fragment only, since some clients join them. */
  readonly hasOneName?: true;
  /** The events follow the client's protocol: what an SDK of the protocol's own vendor would throw on or lose. */
  readonly followsProtocol?: true;
  /** The upstream's connection is closed soon after the client has left. */
  readonly isCancelled?: true;
  /** What the gateway's own record says. */
  readonly record?: ExpectedUsage & { readonly isEstimated?: boolean };
  /** Codes of Weir's contract. */
  readonly rules?: readonly string[];
  /** No more than this, in the measure's unit. */
  readonly atMost?: number;
}

/** A number instead of, or beside, a verdict. */
export type Measure = 'first chunk' | 'further chunk' | 'bytes ahead' | 'memory';

export const UNITS: Readonly<Record<Measure, 'ms' | 'MiB'>> = {
  'first chunk': 'ms',
  'further chunk': 'ms',
  'bytes ahead': 'MiB',
  memory: 'MiB',
};

export interface Case {
  /** `<area>/<name>` */
  readonly id: `${Area}/${string}`;
  /** What the provider or the client does. */
  readonly title: string;
  /** What a client suffers where it fails: one sentence. */
  readonly suffers: string;
  /** A public thread about a gateway, server or client that had it: `owner/repository#number`; null: none was found. */
  readonly thread: string | null;
  readonly upstream: Upstream;
  readonly client: Client;
  readonly request?: {
    /** Offers two functions, `get_weather` and `get_time`. */
    readonly hasTools?: true;
    readonly choices?: number;
    /** False: one JSON object instead of a stream. */
    readonly isStreamed?: false;
    /** False: does not ask for usage. */
    readonly asksUsage?: false;
  };
  /** Of the upstream's response. Default: 200, an event stream. */
  readonly head?: {
    readonly status?: number;
    readonly contentType?: string;
    readonly headers?: Readonly<Record<string, string>>;
  };
  readonly serve: readonly Step[];
  /** What follows the last step. Default: `end`. */
  readonly ends?: 'end' | 'reset' | 'hang';
  /** The client disconnects as soon as it has this text; `""`: as soon as the upstream has the request. */
  readonly leavesAt?: string;
  /** The client reads nothing of the body. */
  readonly readsNothing?: true;
  readonly measure?: Measure;
  /** Played after all others: gateways stop calling a provider that refuses their key. */
  readonly isLast?: true;
  readonly expect: Expectation;
}

export function areaOf({ id }: Pick<Case, 'id'>): Area {
  const [name] = id.split('/');
  const area = Object.keys(AREAS).find((known): known is Area => known === name);
  if (area === undefined) throw new Error(`${id} has no area`);
  return area;
}

/** Only Weir's contract asks for it. */
export function isWeirsOwn(one: Pick<Case, 'id'>): boolean {
  return areaOf(one) === 'contract';
}
