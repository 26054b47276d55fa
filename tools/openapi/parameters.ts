/** Query parameters of operations: the rows by which the code reads them, with the comments there. */
import { commentsIn } from './fields.ts';

const PATH = 'api/parameters.ts';
/** The rows that several routes have. */
const SHARED: Readonly<Record<string, string>> = Object.assign(
  {},
  ...['SPAN', 'FORMAT', 'PAGE_LIMIT', 'KEY_FILTER', 'FACT_FILTERS'].map((name) => commentsIn(PATH, name)),
);

/** The descriptions of the parameters of a route. @param tables the table of the route, by its name */
export function queryOf(tables: Readonly<Record<string, object>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(tables).flatMap(([table, params]) => {
      const texts = { ...SHARED, ...commentsIn(PATH, table) };
      return Object.keys(params).map((name) => {
        const text = texts[name];
        if (text === undefined)
          throw new Error(`The parameter ${name} of ${table} has no comment in ${PATH}`);
        return [name, text];
      });
    }),
  );
}
