/**
 * The query parameters of reports, lists and admin routes: a row each, by which it is read, others are refused, and docs/openapi.json and
 * docs/api.md describe it. A comment is the description of the rows below it.
 */
import { invalidField } from '../auth/body-fields.ts';
import type { Param } from '../http/query.ts';
import { readCursor } from '../metering/ledger.ts';
import { STATUSES } from '../metering/record.ts';
import { REFUSAL_GROUPS } from '../metering/refusals.ts';
import { GROUPS, type Group, isTagGroup, tagOf } from '../metering/report.ts';
import { DAY_MS, isoDay, isRequestId } from '../metering/time.ts';
import { MAX_REPORT_ROWS, TAG_NAME } from '../shared/limits.ts';
import { ok } from '../shared/result.ts';

const MAX_LIST_RECORDS = 1000;
const DEFAULT_LIST_RECORDS = 100;
const MAX_SEARCH_CHARS = 200;
/** The id of a gateway key, of a host's caller or of a hashed credential. */
const KEY_ID = /^[\w-]{1,64}$/;

const TEXT: Param<string | null> = { read: ([value = null]) => ok(value) };

const SPAN = {
  /** a day or a UTC time (2026-11-01T12:00:00Z); default: the first of this month */
  from: timeParam('2026-11-01', (nowMs) => `${isoDay(nowMs).slice(0, 7)}-01`),
  /** exclusive; default: the end of today; at most 366 days after from */
  to: timeParam('2026-12-01', (nowMs) => isoDay(nowMs + DAY_MS)),
};

const FORMAT = {
  /** json or csv */
  format: wordParam(['json', 'csv'], 'format must be json or csv'),
};

const PAGE_LIMIT = {
  /** 1 to 1,000; default 100 */
  limit: countParam(MAX_LIST_RECORDS, DEFAULT_LIST_RECORDS),
};

export const KEY_FILTER = {
  /** the id of a key, for the admin */
  key: checkedParam((id) => KEY_ID.test(id), 'key must be the id of a key'),
};

/** Who made a request, and for what. */
export const FACT_FILTERS = {
  /** only requests of this user; empty: of none (docs/attribution.md#reports) */
  user: TEXT,
  /** only requests with this value */
  session: TEXT,
  app: TEXT,
  cache_cause: TEXT,
  team: TEXT,
  /** <name>:<value> */
  tag: tagsParam(),
};

/** `GET /v1/usage` */
export const USAGE_PARAMS = {
  ...SPAN,
  /**
   * with commas: day, hour, provider, model, route, status, fault, error, key, user, session, app, cache_cause, team,
   * tag:<name>; key for the admin
   */
  group_by: groupsParam(
    `${GROUPS.join(', ')}, tag:<name>`,
    (word): Group | undefined =>
      isTagGroup(word) && TAG_NAME.test(tagOf(word)) ? word : GROUPS.find((name) => name === word),
    'day',
  ),
  /** rows, 1 to 10,000; default 10,000, and 1,000 by user, session, app or tag */
  limit: countParam(MAX_REPORT_ROWS, null),
  ...FORMAT,
  ...KEY_FILTER,
  /** only requests with this value */
  provider: TEXT,
  /** the address that served */
  model: TEXT,
  /** only requests with this value */
  route: TEXT,
  status: statusParam(),
  fault: TEXT,
  error: TEXT,
  ...FACT_FILTERS,
};

/** `GET /v1/usage/refusals` */
export const REFUSAL_PARAMS = {
  ...SPAN,
  /** code, hour, day, key */
  group_by: groupsParam(
    REFUSAL_GROUPS.join(', '),
    (word) => REFUSAL_GROUPS.find((name) => name === word),
    'code',
  ),
  ...FORMAT,
  ...KEY_FILTER,
};

/** `GET /v1/usage/records` */
export const RECORD_PARAMS = {
  ...SPAN,
  ...PAGE_LIMIT,
  /** next_cursor of the page before, until has_more is false; a page may be empty */
  cursor: cursorParam(readCursor),
  /** part of the model's names, the id of request or key, the user, session or app; at most 200 characters */
  search: searchParam(),
  ...KEY_FILTER,
  /** the requested model, or the address that served */
  model: TEXT,
  /** one status, or several with commas */
  status: statusesParam(),
  /** true: only outputs that began and then failed */
  truncated: wordParam(['true'], 'truncated takes true'),
  /** only requests with this value */
  provider: TEXT,
  route: TEXT,
  client: TEXT,
  fault: TEXT,
  error: TEXT,
  ...FACT_FILTERS,
};

/** `GET /v1/admin/audit` */
export const AUDIT_PARAMS = {
  /** the id of a key */
  key: KEY_FILTER.key,
  /** only requests with this value */
  team: TEXT,
  ...PAGE_LIMIT,
  /** next_cursor of the page before, until has_more is false; a page may be empty */
  cursor: cursorParam((id) => (isRequestId(id) ? id : null)),
};

/** `GET /admin/keys/<id>`, and of a person without a key `GET /v1/admin/teams/<id>` */
export const USE_PARAMS = {
  /** also the use of this user */
  user: TEXT,
};

/** `GET /v1/admin/status` */
export const STATUS_PARAMS = {
  /** isolate: in_flight and circuits alone, without a read of the ledger */
  only: wordParam(['isolate'], 'only takes isolate, or is left out'),
};

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?Z)?$/;

/** `ms` is since the epoch. */
interface TimeValue {
  /** As the client wrote it. */
  readonly text: string;
  readonly ms: number;
}

function timeParam(example: string, byDefault: (nowMs: number) => string): Param<TimeValue> {
  return {
    read: ([value], name, nowMs) => {
      const text = value ?? byDefault(nowMs);
      const ms = ISO_TIME.test(text) ? Date.parse(text) : Number.NaN;
      // A day that its month does not have is read as one of the next month.
      return Number.isNaN(ms) || isoDay(ms) !== text.slice(0, 10)
        ? invalidField(`${name} must be a day or a UTC time, as ${example} or ${example}T12:00:00Z`, name)
        : ok({ text, ms });
    },
  };
}

/** A text that passes a check; null: it is absent. */
function checkedParam(isValid: (text: string) => boolean, message: string): Param<string | null> {
  return {
    read: ([value = null], name) =>
      value === null || isValid(value) ? ok(value) : invalidField(message, name),
  };
}

/** One of some words; null: it is absent. */
function wordParam<Word extends string>(words: readonly Word[], message: string): Param<Word | null> {
  return {
    read: ([value], name) => {
      const word = words.find((known) => known === value) ?? null;
      return word === null && value !== undefined ? invalidField(message, name) : ok(word);
    },
  };
}

/** A whole number from 1. */
function countParam<Default extends number | null>(max: number, byDefault: Default): Param<number | Default> {
  return {
    read: ([value], name) => {
      if (value === undefined) return ok(byDefault);
      const count = Number(value);
      return Number.isSafeInteger(count) && count >= 1 && count <= max
        ? ok(count)
        : invalidField(`${name} must be a whole number from 1 to ${max}`, name);
    },
  };
}

function cursorParam<Cursor>(read: (text: string) => Cursor | null): Param<Cursor | null> {
  return {
    read: ([value], name) => {
      const cursor = value === undefined ? null : read(value);
      return cursor === null && value !== undefined
        ? invalidField('cursor must be the next_cursor of the page before', name)
        : ok(cursor);
    },
  };
}

function searchParam(): Param<string> {
  return {
    read: ([value = ''], name) => {
      const search = value.trim().toLowerCase();
      return search.length > MAX_SEARCH_CHARS
        ? invalidField(`search has at most ${MAX_SEARCH_CHARS} characters`, name)
        : ok(search);
    },
  };
}

/** @param names for the message */
function groupsParam<Name extends string>(
  names: string,
  find: (word: string) => Name | undefined,
  byDefault: Name,
): Param<readonly Name[]> {
  return {
    read: ([value = byDefault], param) => {
      const groups: Name[] = [];
      for (const word of value.split(',')) {
        const group = find(word.trim());
        if (group === undefined) return invalidField(`group_by takes ${names}`, param);
        if (groups.includes(group)) return invalidField(`group_by names ${group} twice`, param);
        groups.push(group);
      }
      return ok(groups);
    },
  };
}

/** Statuses of records, separated by commas; null: all. */
function statusesParam(): Param<readonly string[] | null> {
  return {
    read: ([value], name) => {
      const statuses = value?.split(',') ?? null;
      return statuses?.some((status) => !STATUSES.some((known) => known === status))
        ? invalidField(`status must be one of: ${STATUSES.join(', ')}`, name)
        : ok(statuses);
    },
  };
}

/** One status; null: all. */
function statusParam(): Param<string | null> {
  return {
    read: (values, name, nowMs) => {
      const statuses = statusesParam().read(values, name, nowMs);
      if (statuses.kind === 'error') return statuses;
      const [status = null, second] = statuses.value ?? [];
      return second === undefined
        ? ok(status)
        : invalidField('A report takes one status: group_by=status has all of them', name);
    },
  };
}

/** Names of tags with values. The query may have several. */
function tagsParam(): Param<readonly (readonly [name: string, value: string])[]> {
  return {
    read: (values, param) => {
      const tags = values.map((tag) => {
        const name = tagName(tag);
        return [name, tag.slice(name.length + 1)] as const;
      });
      return tags.every(([name]) => TAG_NAME.test(name))
        ? ok(tags)
        : invalidField('tag must be <name>:<value>, as tag=team:search', param);
    },
  };
}

/** The name in `<name>:<value>`; empty where there is none. */
export function tagName(tag: string): string {
  return tag.slice(0, Math.max(tag.indexOf(':'), 0));
}
