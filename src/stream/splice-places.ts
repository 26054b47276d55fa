/** Where the values of an event are written in its JSON, and that JSON with others in their place (`splice-template.ts`). */

/** A value of the event, as its JSON is written: where it begins and ends, a string without its quotes. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

export interface TextValue extends Place {
  readonly literal: string;
}

/** The strings that stand behind that key. */
export function* valuesOf(json: string, key: string): Generator<TextValue> {
  for (const match of json.matchAll(new RegExp(`"${key}"[ \\t]*:[ \\t]*"((?:[^"\\\\]+|\\\\.)*)"`, 'g'))) {
    const [whole, literal = ''] = match;
    const end = match.index + whole.length - 1;
    yield { start: end - literal.length, end, literal };
  }
}

/** The whole numbers that stand behind that key. */
export function* numbersOf(json: string, key: string): Generator<Place> {
  for (const match of json.matchAll(new RegExp(`"${key}"[ \\t]*:[ \\t]*(\\d+)(?=[ \\t]*[,}])`, 'g'))) {
    const [whole, number = ''] = match;
    const end = match.index + whole.length;
    yield { start: end - number.length, end };
  }
}

export function putMark(json: string, values: readonly Place[], mark: string): string {
  return putMarks(
    json,
    values.map(({ start, end }) => ({ start, end, mark })),
  );
}

export function putMarks(json: string, places: readonly (Place & { readonly mark: string })[]): string {
  let marked = '';
  let at = 0;
  for (const { start, end, mark } of [...places].sort((a, b) => a.start - b.start)) {
    marked += json.slice(at, start) + mark;
    at = end;
  }
  return marked + json.slice(at);
}
