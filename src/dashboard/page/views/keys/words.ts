/** A key's limits in a few words. */
import type { Limits } from '../../api/types.ts';
import { count, NONE } from '../../format/numbers.ts';

export function limitsInWords({ rpm, tpm, max_concurrent, max_output_tokens }: Limits): string {
  const words = [
    rpm !== undefined && `${count(rpm)} requests/min`,
    tpm !== undefined && `${count(tpm)} tokens/min`,
    max_concurrent !== undefined && `${count(max_concurrent)} at once`,
    max_output_tokens !== undefined && `${count(max_output_tokens)} tokens out`,
  ].filter((word) => word !== false);
  return words.length === 0 ? NONE : words.join(', ');
}

const PERIODS: Readonly<Record<string, string>> = { day: 'a day', month: 'a month', total: 'in all' };

export function periodInWords(per: string): string {
  return PERIODS[per] ?? per;
}
