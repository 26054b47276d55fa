/** Tools' names for an API that takes no digit and no dash at their beginning, and back: without state, as their calls come back. */

const PREFIX = 'weir_';
const REFUSED = /^[\d-]/;

/** A name of OpenAI's, as such an API takes it. */
export function letteredName(name: string): string {
  return REFUSED.test(name) ? PREFIX + name : name;
}

/** The name that became this one. */
export function ownName(name: string): string {
  const own = name.slice(PREFIX.length);
  return name.startsWith(PREFIX) && REFUSED.test(own) ? own : name;
}
