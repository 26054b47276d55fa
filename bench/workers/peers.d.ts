/** Types of packages that only the bench installs, so that the type check works without them. */
declare module 'eventsource-parser' {
  export function createParser(callbacks: { readonly onEvent: (event: { readonly data: string }) => void }): {
    feed(text: string): void;
  };
}

declare module '@portkey-ai/gateway/build/start-server.js' {}
