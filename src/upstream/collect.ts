/** Reads an upstream's answer whole, plain or streamed, for a client that asked for an object (or got JSON for a stream). */
import { type ApiError, apiError } from '../canonical/error.ts';
import { isObject, parseJson } from '../canonical/json.ts';
import { MAX_ANSWER_BYTES } from '../canonical/limits.ts';
import { findUpstreamError, type Upstream } from '../canonical/upstream-error.ts';
import { type AnswerOptions, AnswerReader, type AnswerSink } from '../stream/answer-reader.ts';
import { classifyError } from './classify.ts';
import { readBounded } from './read-bounded.ts';

/** Whether an answer is an event stream: whatever calls itself neither JSON nor a page is taken for one. */
export function isEventStream(response: Response): boolean {
  return !/json|html/i.test(response.headers.get('content-type') ?? '');
}

/**
 * Feeds the whole answer to the sink. Never throws.
 * @param callerPays the credential was the caller's own, and so are errors about it
 * @returns the error with which the answer failed, or null
 */
export async function collectAnswer(
  response: Response,
  options: AnswerOptions,
  sink: AnswerSink,
  callerPays: boolean,
): Promise<ApiError | null> {
  let failure: ApiError | null = null;
  const reader = new AnswerReader(options, {
    chunk: (chunk) => sink.chunk(chunk),
    vendor: (json) => sink.vendor(json),
    end: (error) => {
      failure = error;
      sink.end(error);
    },
  });
  const { upstream } = options.context;
  try {
    if (isEventStream(response)) await readStream(response, reader, upstream);
    else await readPlain(response, reader, upstream, callerPays);
  } catch {
    reader.fail(apiError('upstream_truncated', `${upstream.name} broke the connection`));
  }
  return failure;
}

async function readStream(response: Response, reader: AnswerReader, upstream: Upstream): Promise<void> {
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) return reader.fail(tooLarge(upstream));
    reader.push(chunk);
    if (reader.isOver) return;
  }
  reader.end();
}

async function readPlain(
  response: Response,
  reader: AnswerReader,
  upstream: Upstream,
  callerPays: boolean,
): Promise<void> {
  const text = await readBounded(response.body, MAX_ANSWER_BYTES);
  if (text === null) return reader.fail(tooLarge(upstream));
  const answer = parseJson(text);
  if (!isObject(answer)) {
    return reader.fail(
      apiError('upstream_invalid', `${upstream.name} answered with what is not a JSON object`),
    );
  }
  const error = findUpstreamError(answer);
  if (error !== null) return reader.fail(classifyError(error, upstream, callerPays));
  reader.plain(answer);
}

function tooLarge(upstream: Upstream): ApiError {
  return apiError(
    'upstream_event_too_large',
    `${upstream.name} sent an answer larger than ${MAX_ANSWER_BYTES} bytes`,
  );
}
