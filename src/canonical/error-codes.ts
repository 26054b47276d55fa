/** What the numeric codes mean that some hosts report in place of an HTTP status: data. Other codes have no known meaning. */

/**
 * MiniMax's `base_resp.status_code`: https://platform.minimax.io/docs/api-reference/errorcode.md (read 2026-11-28).
 * 1000, 1024 and 1033 are its internal errors.
 */
const MINIMAX: ReadonlyMap<string, number> = new Map([
  ['1001', 504],
  ['1002', 429],
  ['1004', 401],
  ['1008', 402],
  ['1026', 400],
  ['1027', 400],
  ['1039', 429],
  ['1041', 429],
  ['1042', 400],
  ['2013', 400],
  ['2045', 429],
  ['2049', 401],
  ['2056', 429],
]);

/**
 * `errors[].code` of Workers AI: https://developers.cloudflare.com/workers-ai/platform/errors/ (updated 2026-07-29).
 * Those with a comment are not on the page: seen by users in 2026, or of packages/gateway-core of cloudflare/ai
 * (2026-07-30).
 */
const CLOUDFLARE: ReadonlyMap<string, number> = new Map([
  // AI Gateway: "Provider request timeout".
  ['2014', 408],
  // AI Gateway: the model needs a key of its maker.
  ['2021', 403],
  ['3003', 400],
  ['3006', 413],
  ['3007', 408],
  ['3008', 408],
  ['3023', 403],
  ['3036', 429],
  ['3039', 400],
  ['3040', 429],
  ['3041', 403],
  ['3042', 404],
  // "Internal server error".
  ['3043', 500],
  // "Request timeout", after two to four minutes.
  ['3046', 408],
  ['5004', 400],
  ['5005', 400],
  // Invalid input: "AiError: Bad input" (opencode.school#174, 2026-04-28).
  ['5006', 400],
  ['5007', 400],
  ['5016', 403],
  ['5018', 403],
  ['5019', 400],
  // "The estimated number of input and maximum output tokens … exceeded this model context window limit".
  ['5021', 400],
  // "JSON Mode couldn't be met": the model's output.
  ['5024', 502],
  // AI Gateway: the model is not in the catalogue.
  ['7003', 404],
  // Cloudflare's API: the token.
  ['9109', 401],
  ['10000', 401],
]);

/** The HTTP status that a code stands for, by the member that has it. Undefined: unknown. */
export function statusOfCode(member: 'base_resp' | 'errors', code: string | undefined): number | undefined {
  return (member === 'base_resp' ? MINIMAX : CLOUDFLARE).get(code ?? '');
}
