/**
 * The fastest output speeds of models: how much of an output can exist after a time. A request that ended without an answer is charged by
 * them (G3). A model without a row may have written its whole output.
 */
import { matchesAnyGlob } from '../../shared/glob.ts';

interface OutputSpeed {
  /** The id under which prices are looked up, too. */
  readonly provider: string;
  /** Globs over the provider's names. */
  readonly models: readonly string[];
  /** Output tokens per second, the median of measurements. */
  readonly median: number;
}

/** Sources publish medians; single requests are faster at times, with predicted or speculated tokens. */
const FASTEST_TIMES_MEDIAN = 3;

/** By source, all read on 2026-11-23. */
const OUTPUT_SPEEDS: readonly OutputSpeed[] = [
  // Artificial Analysis: https://benchlm.ai/llm-speed (data of 2026-04-07)
  { provider: 'openai', models: ['gpt-5.4-mini', 'gpt-5.4-mini-20*'], median: 201 },
  { provider: 'openai', models: ['gpt-5.4-nano', 'gpt-5.4-nano-20*'], median: 191 },
  { provider: 'openai', models: ['gpt-4.1-nano', 'gpt-4.1-nano-20*'], median: 181 },
  { provider: 'openai', models: ['o4-mini', 'o4-mini-20*'], median: 161 },
  { provider: 'openai', models: ['o3-mini', 'o3-mini-20*'], median: 160 },
  { provider: 'gemini', models: ['gemini-2.5-flash'], median: 221 },
  { provider: 'mistral', models: ['ministral-3b-2512', 'ministral-3b-latest'], median: 274 },
  { provider: 'mistral', models: ['ministral-8b-2512', 'ministral-8b-latest'], median: 182 },
  { provider: 'mistral', models: ['mistral-small-2603', 'mistral-small-latest'], median: 175 },
  { provider: 'xai', models: ['grok-4.20', 'grok-4.20-0309-*'], median: 233 },
  { provider: 'xai', models: ['grok-3-mini'], median: 190 },
  { provider: 'xai', models: ['grok-code-fast-1'], median: 172 },
  // https://elliotgate.com/use-cases/fastest-llm-api
  { provider: 'openai', models: ['gpt-5.3-codex', 'gpt-5.4', 'gpt-5.4-20*'], median: 96 },
  { provider: 'gemini', models: ['gemini-3.1-flash-lite*'], median: 321 },
  // https://www.aitoolrank.net/reviews/fastest-ai-models-2026
  { provider: 'openai', models: ['gpt-5.1', 'gpt-5.1-20*'], median: 92 },
  { provider: 'openai', models: ['gpt-5.2', 'gpt-5.2-20*'], median: 70 },
  { provider: 'openai', models: ['gpt-5.2-codex'], median: 99 },
  { provider: 'anthropic', models: ['claude-opus-4-5*'], median: 57 },
  { provider: 'anthropic', models: ['claude-opus-4-6*'], median: 51 },
  { provider: 'anthropic', models: ['claude-sonnet-4-6*'], median: 71 },
  { provider: 'gemini', models: ['gemini-2.5-flash-lite*'], median: 389 },
  { provider: 'gemini', models: ['gemini-3-flash*'], median: 192 },
  { provider: 'gemini', models: ['gemini-3.1-pro*'], median: 113 },
  // The upper end of its ranges: https://callsphere.ai/blog/gpt-5-5-vs-claude-opus-4-7-latency-speed-throughput-2026 (2026-04-26)
  { provider: 'openai', models: ['gpt-5.5', 'gpt-5.5-20*'], median: 120 },
  { provider: 'anthropic', models: ['claude-opus-4-7*'], median: 90 },
  // https://lmspeed.net/compare/model/claude-haiku-4-5-vs-claude-sonnet-4
  { provider: 'anthropic', models: ['claude-haiku-4-5*'], median: 112 },
  // https://lattice.uptownhr.com/claude-opus-4-5/speed-analysis (2025-11-24)
  { provider: 'anthropic', models: ['claude-sonnet-4-5*'], median: 63 },
  { provider: 'anthropic', models: ['claude-opus-4-1*'], median: 45 },
  // https://officechai.com/ai/these-are-the-fastest-ai-models-june-2026/
  { provider: 'gemini', models: ['gemini-3.5-flash'], median: 212 },
  { provider: 'xai', models: ['grok-4.3', 'grok-4.3-latest'], median: 190 },
  // https://console.groq.com/docs/models
  { provider: 'groq', models: ['openai/gpt-oss-120b'], median: 500 },
];

interface MeteredModel {
  /** `<provider>/<model>`. */
  readonly address?: string;
  readonly priceIds: readonly string[];
  readonly model: string;
  /** A premium tier may be faster. */
  readonly tier?: string | undefined;
  /** The most output tokens a second, as the operator of its server states it; absent: the table decides. */
  readonly maxTokensPerSecond?: number;
}

/**
 * A model without a measurement counts as this many times as fast as the fastest of its provider, which is itself above
 * its median: 1,206 tokens a second for OpenAI. Its fastest model, on hardware of its own, has "over 1,000":
 * https://aihola.com/article/openai-codex-spark-cerebras (2026-11-23).
 */
const UNMEASURED_TIMES_FASTEST = 2;

/**
 * The highest speed of any of these models, in output tokens per second of one choice.
 * @returns null if the speed of one is not known
 */
export function fastestOutputSpeed(models: readonly MeteredModel[]): number | null {
  return highest(models, () => null);
}

/**
 * As {@link fastestOutputSpeed}, where a model without a row, or in a premium tier, is assumed to be as fast as it has shown, else faster
 * than all measured ones of its provider, else as fast as a usual model. No hard budget may depend on it.
 */
export function assumedOutputSpeed(models: readonly MeteredModel[], shown = new ShownSpeeds()): number {
  const unmeasured = ({ address, priceIds, tier }: MeteredModel) => {
    const own = address === undefined || tier !== undefined ? null : shown.of(address);
    if (own !== null) return own * FASTEST_TIMES_MEDIAN;
    const medians = mediansOf(({ provider }) => priceIds.includes(provider));
    const fastest = medians.at(-1);
    return fastest === undefined ? usualSpeed() : fastest * FASTEST_TIMES_MEDIAN * UNMEASURED_TIMES_FASTEST;
  };
  return highest(models, unmeasured) ?? usualSpeed();
}

/** The slowest first. */
function mediansOf(isMeant: (speed: OutputSpeed) => boolean): readonly number[] {
  return OUTPUT_SPEEDS.filter(isMeant)
    .map(({ median }) => median)
    .sort((a, b) => a - b);
}

function usualSpeed(): number {
  const medians = mediansOf(() => true);
  return (medians[Math.floor(medians.length / 2)] ?? 0) * FASTEST_TIMES_MEDIAN;
}

/** Models whose speed an isolate remembers. */
const MAX_SHOWN = 1000;
/** A speed is not measured over less time or fewer tokens. */
const MIN_SHOWN_MS = 500;
const MIN_SHOWN_TOKENS = 50;

/** How fast models have written whole outputs, since the isolate began. */
export class ShownSpeeds {
  /** The fastest of each, in tokens per second, by the model's address. */
  readonly #fastest = new Map<string, number>();

  /** @param ms from the request to the end of the output */
  add(address: string, tokens: number, ms: number): void {
    if (ms < MIN_SHOWN_MS || tokens < MIN_SHOWN_TOKENS) return;
    const fastest = Math.max(this.#fastest.get(address) ?? 0, (tokens * 1000) / ms);
    this.#fastest.delete(address);
    this.#fastest.set(address, fastest);
    const [oldest] = this.#fastest.keys();
    if (this.#fastest.size > MAX_SHOWN && oldest !== undefined) this.#fastest.delete(oldest);
  }

  of(address: string): number | null {
    return this.#fastest.get(address) ?? null;
  }
}

/** @param unmeasured the speed of a model that has none in the table */
function highest(
  models: readonly MeteredModel[],
  unmeasured: (model: MeteredModel) => number | null,
): number | null {
  const speeds = models.map((one) => one.maxTokensPerSecond ?? measuredSpeed(one) ?? unmeasured(one));
  return speeds.reduce((a, b) => (a === null || b === null ? null : Math.max(a, b)), speeds[0] ?? null);
}

function measuredSpeed({ priceIds, model, tier }: MeteredModel): number | null {
  const row = OUTPUT_SPEEDS.find(
    (speed) => priceIds.includes(speed.provider) && matchesAnyGlob(speed.models, model),
  );
  return row === undefined || tier !== undefined ? null : row.median * FASTEST_TIMES_MEDIAN;
}
