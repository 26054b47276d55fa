/** The headers with an API key, unless a profile says otherwise. */
export function bearer(secret: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${secret}` };
}
