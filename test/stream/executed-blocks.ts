/** Counts the work of Weir's own code with V8's coverage: how often each block of `src` runs, be it a loop, a callback or a call. */
import { type Profiler, Session } from 'node:inspector/promises';

export class BlockCounter implements Disposable {
  readonly #session = new Session();

  private constructor() {
    this.#session.connect();
  }

  static async start(): Promise<BlockCounter> {
    const counter = new BlockCounter();
    await counter.#session.post('Profiler.enable');
    await counter.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    return counter;
  }

  /** @returns the number of blocks that ran since the last call; equal for equal work */
  async take(): Promise<number> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    return result
      .filter(({ url }) => url.includes('/src/'))
      .reduce((sum, script) => sum + blocksOf(script), 0);
  }

  [Symbol.dispose](): void {
    this.#session.disconnect();
  }
}

function blocksOf({ functions }: Profiler.ScriptCoverage): number {
  return functions.reduce((sum, { ranges }) => sum + ranges.reduce((all, { count }) => all + count, 0), 0);
}
