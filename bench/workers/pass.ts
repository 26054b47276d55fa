/** Row `pass`: the runtime's own pass-through, in which no byte of the body enters JavaScript. */
import { askUpstream, type BenchEnv } from './upstream.ts';

export default { fetch: askUpstream } satisfies ExportedHandler<BenchEnv>;
