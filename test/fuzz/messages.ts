/** What the fuzz's process and its fuzzer's say to each other. */

export interface Start {
  /** The gateway's. */
  readonly port: number;
  readonly seed: number;
  readonly seconds: number;
  /** This case alone. */
  readonly only: number | null;
}

export type FuzzReport =
  | { readonly kind: 'started'; readonly upstreamPort: number }
  /** A case whose answer breaks a rule; `file` has its bytes. */
  | { readonly kind: 'fault'; readonly number: number; readonly fault: string; readonly file: string }
  | {
      readonly kind: 'done';
      readonly requests: number;
      /** How often the upstream was asked for each case's model, as its records name it. */
      readonly asked: readonly (readonly [model: string, count: number])[];
      /** How many requests ended in which way. */
      readonly ends: Readonly<Record<string, number>>;
    };
