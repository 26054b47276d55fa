/** Types of the packages that only the bench installs, so that the type check does not need them. */
declare module 'eventsource-parser' {
  export function createParser(callbacks: { readonly onEvent: (event: { readonly data: string }) => void }): {
    feed(text: string): void;
  };
}

declare module '@portkey-ai/gateway/build/start-server.js' {}
