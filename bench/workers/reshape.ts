/** Rewrites an event into a canonical frame with JSON.parse and JSON.stringify, for rows that parse streams. */

interface UpstreamChoice {
  readonly index: number;
  readonly delta: unknown;
  readonly logprobs?: unknown;
  readonly finish_reason: string | null;
}

interface UpstreamChunk {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly service_tier?: string | null;
  readonly system_fingerprint?: string | null;
  readonly choices?: readonly UpstreamChoice[];
  readonly usage?: unknown;
}

/** The frame for an event's data; `""` for a vendor event, which is dropped. */
export function reshape(data: string): string {
  if (data === '[DONE]') return 'data: [DONE]\n\n';
  const chunk: UpstreamChunk = JSON.parse(data);
  if (chunk.choices === undefined) return '';
  const { id, object, created, model } = chunk;
  const choices = chunk.choices.map(({ index, delta, logprobs = null, finish_reason }) => ({
    index,
    delta,
    logprobs,
    finish_reason,
  }));
  const head = { id, object, created, model };
  const optional = {
    service_tier: chunk.service_tier ?? null,
    system_fingerprint: chunk.system_fingerprint ?? null,
  };
  return `data: ${JSON.stringify({ ...head, ...optional, choices })}\n\n`;
}
