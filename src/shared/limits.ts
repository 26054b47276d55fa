/** The limits that several rooms share and no setting changes. A limit with one user is defined there. */

/** OpenAI accepts `n` up to 128, so a stream with more choices is invalid. */
export const MAX_CHOICES = 128;

/** An upstream's id, model, service tier or fingerprint, which every chunk repeats. Also names that a client chooses. */
export const MAX_NAME_CHARS = 512;

/** Tool calls of one output. OpenAI accepts at most 128 tools, and a model may call each several times. */
export const MAX_TOOL_CALLS = 1024;

/** The names of a request's tools that are kept until its output ends, to restore them there. */
export const MAX_TOOL_NAMES_CHARS = 64 * 1024;

/** A non-streaming response of an upstream, or one that is collected from a stream. */
export const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;

/** The frames of one event have at most this many times the maximum bytes of an event. */
export const MAX_OUTPUT_FACTOR = 4;

/** The part of an upstream's error message that a client sees. */
export const MAX_ERROR_MESSAGE_CHARS = 1000;

/** Names in one request's `models` together with `model`, steps of an alias, and the targets that they all resolve to. */
export const MAX_TARGETS = 8;

/** Rows of one usage report. Callers choose the model names, and each is a separate row. */
export const MAX_REPORT_ROWS = 10_000;

/** Records that a report reads for hours that it covers only in part. */
export const MAX_PART_RECORDS = 20_000;

/** Ledger objects that one response queries. */
export const MAX_QUERIED_LEDGERS = 400;

/** Ledger objects that are queried concurrently. */
export const QUERIED_LEDGERS_AT_ONCE = 50;

/** How long counts of refused requests are kept: longer than any report. */
export const REFUSALS_KEPT_DAYS = 400;

/** How long the audit, and the names of revoked keys, are kept. */
export const AUDIT_KEPT_DAYS = 400;

/** KV returns at most this many values for one call. */
export const MAX_BULK_GET = 100;

/** Stands for the name of an erased user where an entry stays. */
export const ERASED = '(erased)';

/** A tag's name, in `TAGS`, in a key's `tags` and in `x-weir-tags`. */
export const TAG_NAME = /^[a-z0-9_.-]{1,32}$/;

/** Tags of one request. */
export const MAX_TAGS = 8;
