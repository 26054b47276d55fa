/** A request's time line: waiting until the first token, then streaming until the end. */
import type { UsageRecord } from '../api/types.ts';
import { milliseconds } from '../format/numbers.ts';

export function TimeLine({ record: { total_ms, first_token_ms, status } }: { record: UsageRecord }) {
  const first = `${Math.min(1, (first_token_ms ?? total_ms) / (total_ms || 1)) * 100}%`;
  return (
    <figure>
      <svg width="100%" height="10" aria-hidden="true">
        <rect class={status} width="100%" height="10" />
        <rect class="waiting" width={first} height="10" />
      </svg>
      <figcaption>
        <span>
          {first_token_ms === null ? 'no output' : `first token after ${milliseconds(first_token_ms)}`}
        </span>
        <span>end after {milliseconds(total_ms)}</span>
      </figcaption>
    </figure>
  );
}
