/** Times in the reader's own locale and zone, which is named; days of reports are UTC's. */

const zoneParts = new Intl.DateTimeFormat(undefined, { timeZoneName: 'short' }).formatToParts(new Date());
/** The name of the reader's zone, such as `CET`. */
export const ZONE = zoneParts.find(({ type }) => type === 'timeZoneName')?.value ?? 'local';

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const hours = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayAndTime = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});
const exactly = new Intl.DateTimeFormat(undefined, {
  dateStyle: 'medium',
  timeStyle: 'medium',
});
const days = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });
const longDays = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  timeZone: 'UTC',
});
const dates = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

export function timeOfDay(ms: number): string {
  return clock.format(ms);
}

/** Of the list of requests: without the year, and without the zone, which its head names. */
export function moment(iso: string): string {
  return dayAndTime.format(new Date(iso));
}

export function exactTime(iso: string): string {
  return `${exactly.format(new Date(iso))} ${ZONE}`;
}

export function date(iso: string): string {
  return dates.format(new Date(iso));
}

/** The label of a bar: a UTC day, or an hour of the reader's. */
export function stepLabel(step: string): string {
  return step.length === 10 ? days.format(new Date(step)) : hours.format(new Date(step));
}

/** The same, with everything that it means. */
export function stepTitle(step: string): string {
  if (step.length === 10) return `${longDays.format(new Date(step))} UTC`;
  return `${dayAndTime.format(new Date(step)).replace(/:00(?=\D*$)/, '')} ${ZONE}`;
}
