/** Stands for the runtime's module `cloudflare:workers` in tests that run in Node. */

export class DurableObject {}
export const env = {};
