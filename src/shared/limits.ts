/** The bounds that no setting changes, each with its unit in its name. */

/** OpenAI takes `n` up to 128; a stream that names more choices than that is no answer to any request. */
export const MAX_CHOICES = 128;

/** An upstream's id, model, service tier or fingerprint, which every chunk repeats, and a request's own names in its answer. */
export const MAX_NAME_CHARS = 512;

/** Calls of one answer. OpenAI takes at most 128 tools, and a model may call each several times. */
export const MAX_TOOL_CALLS = 1024;

/** The names in the arguments of a call that is streamed by path (Vertex), which are remembered while it goes on. */
export const MAX_PARTIAL_KEYS_CHARS = 64 * 1024;

/** A plain answer of an upstream, and what is put together of a streamed one for a client that asked for an object (B3). */
export const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** What large bodies and events may hold in an isolate at once: those that find no room wait for it (B3). */
export const MAX_MEMORY_BYTES = 20 * 1024 * 1024;
/** What holds no more is neither counted nor waits: many of them hold what follows from the number of requests. */
export const SMALL_BYTES = 128 * 1024;
/** Of what is larger only one is worked on at once, and in pieces: parsing and writing take some ms a MiB. */
export const LARGE_BYTES = 1024 * 1024;
/** For so long one waits for room; what took room so long ago and has not arrived yet makes way for it. */
export const MAX_MEMORY_WAIT_MS = 10_000;
/** Between the work on one and on the next others have so long: a request that begins needs many a turn. */
export const TURN_PAUSE_MS = 10;
/** After so long the work on one no longer holds up the next one's. */
export const MAX_TURN_MS = 5000;

/**
 * The text of an answer that its protocol repeats at its end, and so is held once (I4): 8 times what 64,000 tokens have. In UTF-16
 * units; in bytes of JSON where it was never decoded.
 */
export const MAX_REPEATED_ANSWER_CHARS = 2 * 1024 * 1024;

/** What of its request a response object repeats, as JSON; beyond it the largest members are left out (I4). */
export const MAX_ECHO_CHARS = 64 * 1024;

/** Names of a request's tools that its answer must have again, which are held until its end (I4, Q1). */
export const MAX_TOOL_NAMES_CHARS = 64 * 1024;

/** Names of fields that a request lost on its way, and the characters of each, which its record and its log hold (Q5). */
export const MAX_REPORTED_NAMES = 100;
export const MAX_REPORTED_NAME_CHARS = 128;

/** What is sent to a provider has at most so many times the bytes that came, beside {@link SMALL_BYTES} that Weir adds itself (B2). */
export const MAX_WRITTEN_FACTOR = 4;

/** A streamed answer that is put together: most of its bytes are the frames around its text. */
export const MAX_COLLECTED_STREAM_BYTES = 64 * 1024 * 1024;

/** The frames of one event have at most so many times the bytes that an event may have (B3). */
export const MAX_OUTPUT_FACTOR = 4;

/** After so much input without output, some ms where it is short lines, a stream lets others have their turn (B4). */
export const MAX_SILENT_BYTES = 64 * 1024;
/** An event without output takes the time of so many bytes of blank lines: no clock advances within a turn. */
export const SILENT_EVENT_BYTES = 512;

/** An upstream's error body: more than this of it is not read. */
export const MAX_ERROR_BODY_BYTES = 64 * 1024;
/** And no longer than that is waited for the rest of it: its status alone decides what follows (R4). */
export const MAX_ERROR_BODY_MS = 5000;

/** What of an upstream's error message reaches a client. */
/** Where an upstream was asked in vain, and why, in the log and the record. */
export const MAX_CAUSE_CHARS = 300;
export const MAX_ERROR_MESSAGE_CHARS = 1000;

/** A provider's model list; OpenRouter's, the longest known, has less than 1 MiB (2026-11-21). */
export const MAX_MODEL_LIST_BYTES = 4 * 1024 * 1024;

/** For so long an isolate remembers what a provider listed. */
export const MODEL_LIST_TTL_MS = 60_000;

/** And for so long that it listed none: a provider that fails is not asked again by every caller. */
export const MODEL_LIST_FAILURE_TTL_MS = 10_000;

/** How many providers' model lists are awaited, and for how long, before `/v1/models` answers with what came. */
export const MODEL_LIST_TIMEOUT_MS = 5000;

/** Days in one usage report: each is at least one KV listing, and a Worker may make 1,000 calls a request. */
export const MAX_REPORT_DAYS = 366;

/** Rows of one usage report: callers choose the models' names, and each is a row of its own. */
export const MAX_REPORT_ROWS = 10_000;

/** KV listings (of 1,000 records each) in one usage report. */
export const MAX_REPORT_LISTINGS = 900;

/** KV listings under way at once: a Worker may have six connections open. */
export const REPORT_LISTINGS_AT_ONCE = 6;

/** Fields of a request's body: the most that any provider has are some dozens, and each of them is copied several times. */
export const MAX_BODY_FIELDS = 1000;

/** Groups of one key's sums in a day, by provider, model, route, status and currency: callers choose the models' names. */
export const MAX_DAY_GROUPS = 1000;

/** Records in one page of a list. */
export const MAX_LIST_RECORDS = 1000;

/** Records that one page may look through for those that match. */
export const MAX_SCANNED_RECORDS = 10_000;

/** Records of hours that a report takes in part. */
export const MAX_PART_RECORDS = 20_000;

/** Ledgers that one answer asks, and how many at a time. */
export const MAX_ASKED_LEDGERS = 400;
export const ASKED_LEDGERS_AT_ONCE = 50;

/** Ledgers whose sums an answer holds at a time: each may be thousands of rows. */
export const SUMMED_LEDGERS_AT_ONCE = 6;

/** Stranded records that one run brings in: each is a call to delete it, and a Worker may make 10,000 calls. */
export const MAX_STRANDED_A_RUN = 4000;

/** A request waits so long for the ledger object of its key, before `BUDGET_FAIL` decides (G6). */
export const LEDGER_TIMEOUT_MS = 5000;

/** A reservation that nothing settles is charged so long after its request's deadline (G3), which is that where none is set. */
export const RESERVATION_GRACE_MS = 60_000;
export const MAX_HELD_MS = 24 * 60 * 60 * 1000;

/** Prices that a deployment may have of its own, and models in each: every record looks through them. */
export const MAX_OWN_PRICES = 500;
export const MAX_PRICE_MODELS = 50;

/** The setting `PRICES`: a Worker's variable holds no more. */
export const MAX_PRICES_SETTING_BYTES = 5 * 1024;

/** The KV key `config/prices`. */
export const MAX_PRICES_CHARS = 256 * 1024;

/** For so long an isolate remembers the prices in KV, and for so long that it could not read them. */
export const PRICES_TTL_MS = 60_000;
export const PRICES_FAILURE_TTL_MS = 10_000;

/** A KV that hangs holds up no record: after so long the prices known so far are taken. */
export const PRICES_TIMEOUT_MS = 2000;

/** Names in one request's `models`, with `model` (R1), steps of an alias, and targets that all of them may stand for together. */
export const MAX_TARGETS = 8;

/** Further passes over the targets (R6). */
export const MAX_RETRIES = 5;

/** What of an answer comes before its output is held so far, while another target may still be asked (R5). */
export const MAX_HELD_OUTPUT_BYTES = 64 * 1024;

/** A target that asks for a longer wait is not asked again (R6). */
export const MAX_RETRY_AFTER_MS = 5000;
/** The longest wait before the first further pass where none was asked for; it doubles with each pass (R6). */
export const FIRST_BACKOFF_MS = 250;

/** So many failures in a row take a target out, and for so long (R7). */
export const CIRCUIT_FAILURES = 5;
export const CIRCUIT_OPEN_MS = 10_000;
/** And one that refused the deployment's key, balance or model, for so long (R7). */
export const CIRCUIT_REFUSED_MS = 60_000;
/** Targets whose failures an isolate remembers: callers choose the models' names. */
export const MAX_CIRCUITS = 1000;

/** What of the attempts is told in a header or in a message, in characters (R8). */
export const MAX_ATTEMPTS_CHARS = 1024;

/** For so long an isolate remembers a key that it read: KV itself takes no shorter time for its cache. */
export const KEY_TTL_MS = 30_000;
/** So many keys an isolate remembers. */
export const MAX_KNOWN_KEYS = 1000;

/** Refused requests are counted in so many rows (an hour, a key and a code each) before they are written; more keys count together. */
export const MAX_REFUSAL_ROWS = 60;
/** The wait before the first write of such counts, by how much it grows with each further one, and the longest (M6). */
export const FIRST_REFUSALS_WAIT_MS = 1000;
export const REFUSALS_WAIT_GROWTH = 1.25;
export const MAX_REFUSALS_WAIT_MS = 10 * 60 * 1000;
/** One request takes care of writing them for so long: a Worker lives on for 30 s after its answer. */
export const MAX_REFUSALS_RUN_MS = 25_000;
/** Longer than any report goes back. */
export const REFUSALS_KEPT_DAYS = 400;
