/** A bare pass-through: sends each request on to the provider as it came, and returns the response as it comes. */
interface Env {
  readonly UPSTREAM: string;
}

export default {
  fetch(request, env) {
    const { pathname, search } = new URL(request.url);
    return fetch(new Request(env.UPSTREAM + pathname + search, request));
  },
} satisfies ExportedHandler<Env>;
