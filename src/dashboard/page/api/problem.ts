/** The outcome of a call of the API, and why one failed. */

/** Why a call failed. */
export type Problem =
  | { readonly kind: 'offline' }
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly code: string;
      readonly message: string;
      readonly param: string | null;
    };

export type Answer<Value> =
  | { readonly kind: 'answer'; readonly value: Value }
  | { readonly kind: 'problem'; readonly problem: Problem };

interface ErrorBody {
  readonly error?: { readonly code?: string; readonly message?: string; readonly param?: string | null };
}

export function problemOf(status: number, text: string): Problem {
  try {
    const { error }: ErrorBody = JSON.parse(text);
    const { code = '', message = '', param = null } = error ?? {};
    return { kind: 'refused', status, code, message, param };
  } catch {
    // A proxy in front of the deployment responds in its own format.
    return { kind: 'refused', status, code: '', message: text.slice(0, 300), param: null };
  }
}
