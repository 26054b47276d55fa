/** The messages between the main process and the fuzzer's process. */

export interface Start {
  /** The gateway's port. */
  readonly port: number;
  readonly seed: number;
  readonly seconds: number;
  /** Only this case. */
  readonly only: number | null;
}

export type FuzzReport =
  | { readonly kind: 'started'; readonly upstreamPort: number }
  /** A case whose response breaks a rule; `file` has its bytes. */
  | { readonly kind: 'fault'; readonly number: number; readonly fault: string; readonly file: string }
  | {
      readonly kind: 'done';
      readonly requests: number;
      /** The number of upstream requests for each case's model, under its name in records. */
      readonly asked: readonly (readonly [model: string, count: number])[];
      /** The number of requests with each kind of end. */
      readonly ends: Readonly<Record<string, number>>;
    };
