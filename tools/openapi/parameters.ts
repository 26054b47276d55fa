/** Query parameters that several operations take, from the lists of the code. */
import { FILTERS, GROUPS } from '../../src/metering/report.ts';

export const RETURNED_GROUPS = `with commas: ${GROUPS.join(', ')}, tag:<name>; key for the admin`;

export const USAGE_FILTERS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(FILTERS.map((name) => [name, 'only requests with this value'])),
  tag: '<name>:<value>',
  key: 'the id of a key, for the admin',
};
