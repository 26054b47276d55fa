/** Formats times in the browser's locale and in the page's time zone. */
import { startOfDay, type Zone, zoneName, zoneOf } from './zone.ts';

type Options = Intl.DateTimeFormatOptions;
const HOURS: Options = { hour: '2-digit', minute: '2-digit' };
const CLOCK: Options = { ...HOURS, second: '2-digit' };
const DAYS: Options = { day: 'numeric', month: 'short' };

const formatsOf = (options: Options): Readonly<Record<Zone, Intl.DateTimeFormat>> => ({
  UTC: new Intl.DateTimeFormat(undefined, { ...options, timeZone: 'UTC' }),
  local: new Intl.DateTimeFormat(undefined, options),
});

const clock = formatsOf(CLOCK);
const hours = formatsOf(HOURS);
const dayAndTime = formatsOf({ ...DAYS, ...CLOCK });
const exactly = formatsOf({ dateStyle: 'medium', timeStyle: 'medium' });
const days = formatsOf(DAYS);
const longDays = formatsOf({ ...DAYS, weekday: 'short', year: 'numeric' });
const dates = formatsOf({ dateStyle: 'medium' });

export function timeOfDay(ms: number): string {
  return clock[zoneOf()].format(ms);
}

export function hourOfDay(iso: string): string {
  return hours[zoneOf()].format(new Date(iso));
}

/** For the list of requests: without the year and without the zone, which the column's head names. */
export function moment(iso: string): string {
  return dayAndTime[zoneOf()].format(new Date(iso));
}

export function exactTime(iso: string): string {
  return `${dateAndTime(iso)} ${zoneName(Date.parse(iso))}`;
}

/** Where the head of the column names the zone. */
export function dateAndTime(iso: string): string {
  return exactly[zoneOf()].format(new Date(iso));
}

export function date(iso: string): string {
  return dates[zoneOf()].format(new Date(iso));
}

/** The label of a bar: a day, or an hour. */
export function stepLabel(step: string): string {
  return step.length === 10
    ? days[zoneOf()].format(startOfDay(step))
    : hours[zoneOf()].format(new Date(step));
}

/** The same with the date and the time zone. */
export function stepTitle(step: string): string {
  if (step.length === 10)
    return `${longDays[zoneOf()].format(startOfDay(step))} ${zoneName(startOfDay(step))}`;
  return `${dayAndTime[zoneOf()].format(new Date(step)).replace(/:00(?=\D*$)/, '')} ${zoneName(Date.parse(step))}`;
}

/** A UTC day of a report. */
export function utcDay(day: string): string {
  return days.UTC.format(new Date(day));
}
