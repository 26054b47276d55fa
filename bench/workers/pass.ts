/** Row `pass`: the runtime forwards the body, and no byte of it enters JavaScript. */
import { askUpstream, type BenchEnv } from './upstream.ts';

export default { fetch: askUpstream } satisfies ExportedHandler<BenchEnv>;
