/** Requests that are refused before any upstream is asked: each leaves a line in the log, and counts in the reports (M6). */
import type { RefusalCounts } from '../metering/refusals.ts';
import type { RequestContext } from './context.ts';
import { routeWord } from './paths.ts';
import { errorCodeOf } from './respond.ts';

/** Weir's own failures and settings that are wrong, which have lines of their own. */
const INTERNAL_STATUS = 500;

export function logRefusal(
  request: Request,
  answer: Response,
  { known, ports, requestId, settings, waitUntil }: RequestContext,
  counts: RefusalCounts,
): void {
  const code = errorCodeOf(answer);
  const { status } = answer;
  // Who has left was refused nothing.
  const isRefused = code !== null && !known.isSentOn && !request.signal.aborted;
  if (isRefused && status !== INTERNAL_STATUS) {
    const { keyId } = known;
    const route = routeWord(request, settings.basePath);
    ports.log({ event: 'request_refused', request_id: requestId, key_id: keyId, route, status, code });
    counts.add(keyId, code);
  }
  counts.writeWhenDue({ startTimer: ports.clock.startTimer, waitUntil });
}
