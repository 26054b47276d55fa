/** Formats times in the browser's locale and time zone. Days of reports are in UTC. */

const zoneParts = new Intl.DateTimeFormat(undefined, { timeZoneName: 'short' }).formatToParts(new Date());
/** The name of the browser's time zone, such as `CET`. */
export const ZONE = zoneParts.find(({ type }) => type === 'timeZoneName')?.value ?? 'local';

type Options = Intl.DateTimeFormatOptions;
const written = (options: Options) => new Intl.DateTimeFormat(undefined, options);
const HOURS: Options = { hour: '2-digit', minute: '2-digit' };
const CLOCK: Options = { ...HOURS, second: '2-digit' };
const DAYS: Options = { day: 'numeric', month: 'short' };
const UTC: Options = { ...DAYS, timeZone: 'UTC' };

const clock = written(CLOCK);
const hours = written(HOURS);
const dayAndTime = written({ ...DAYS, ...CLOCK });
const exactly = written({ dateStyle: 'medium', timeStyle: 'medium' });
const days = written(UTC);
const longDays = written({ ...UTC, weekday: 'short', year: 'numeric' });
const dates = written({ dateStyle: 'medium' });

export function timeOfDay(ms: number): string {
  return clock.format(ms);
}

/** For the list of requests: without the year and without the zone, which the column's head names. */
export function moment(iso: string): string {
  return dayAndTime.format(new Date(iso));
}

export function exactTime(iso: string): string {
  return `${exactly.format(new Date(iso))} ${ZONE}`;
}

export function date(iso: string): string {
  return dates.format(new Date(iso));
}

/** The label of a bar: a UTC day, or a local hour. */
export function stepLabel(step: string): string {
  return step.length === 10 ? days.format(new Date(step)) : hours.format(new Date(step));
}

/** The same with the date and the time zone. */
export function stepTitle(step: string): string {
  if (step.length === 10) return `${longDays.format(new Date(step))} UTC`;
  return `${dayAndTime.format(new Date(step)).replace(/:00(?=\D*$)/, '')} ${ZONE}`;
}
