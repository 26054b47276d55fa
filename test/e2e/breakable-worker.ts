/** The gateway where, on demand, creating a Request and creating an id throw, to test that pages of the origin still work. */
import weir from '../../src/index.ts';

interface Env {
  readonly BREAK?: string;
  readonly [name: string]: unknown;
}

function fail(): never {
  throw new Error('broken on purpose');
}

class BrokenRequest {
  constructor() {
    fail();
  }
}

export default {
  fetch(request, env, context) {
    if (env.BREAK !== undefined) {
      Reflect.set(globalThis, 'Request', BrokenRequest);
      Reflect.set(crypto, 'randomUUID', fail);
    }
    return weir.fetch(request, env, context);
  },
} satisfies ExportedHandler<Env>;
