/** The public holidays that some vendors price as off-peak: whole days in the vendor's zone, a list a year, as it is announced. */
import type { Calendar } from './price.ts';

interface HolidayList {
  /** The first day that the list knows about, and the first that it doesn't. */
  readonly from: string;
  readonly until: string;
  /** From a day to a day, both within. */
  readonly holidays: readonly (readonly [string, string])[];
  readonly source: string;
  readonly checked: string;
}

const LISTS: { readonly [C in Calendar]: HolidayList } = {
  // Weekends that are worked in exchange are left out: no vendor has peak hours on them.
  cn: {
    from: '2026-01-01',
    until: '2027-01-01',
    holidays: [
      ['2026-01-01', '2026-01-03'],
      ['2026-02-15', '2026-02-23'],
      ['2026-04-04', '2026-04-06'],
      ['2026-05-01', '2026-05-05'],
      ['2026-06-19', '2026-06-21'],
      ['2026-09-25', '2026-09-27'],
      ['2026-10-01', '2026-10-07'],
    ],
    source:
      'State Council notice of 2025-11-04, https://www.gov.cn/zhengce/content/202511/content_7047090.htm',
    checked: '2026-11-21',
  },
};

/**
 * Whether a day is a public holiday; null where no list knows it, because it is not announced yet.
 * @param day as `2026-10-01`, in the vendor's zone
 */
export function isHoliday(calendar: Calendar, day: string): boolean | null {
  const { from, until, holidays } = LISTS[calendar];
  if (day < from || day >= until) return null;
  return holidays.some(([first, last]) => day >= first && day <= last);
}
