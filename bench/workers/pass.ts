/** Row `pass`: the runtime forwards the body, and no byte of it enters JavaScript. */
import { type BenchEnv, fetchUpstream } from './upstream.ts';

export default { fetch: fetchUpstream } satisfies ExportedHandler<BenchEnv>;
