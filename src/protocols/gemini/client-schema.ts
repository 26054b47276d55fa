/** Reads the schemas of Google's clients, a form of OpenAPI's, as JSON Schema. */
import { mapSubschemas } from '../../request-translation/schemas.ts';
import { isObject, type JsonObject, readArray } from '../../shared/json.ts';
import { enumName, inCamelCase } from './enums.ts';

/** Bounds that Google writes as texts, as protobuf has 64-bit integers. */
const BOUNDS = ['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'];

/** A schema in Google's form; one of JSON Schema stays as it is. `propertyOrdering` and `example` have no counterpart that all take. */
export function readSchema(given: JsonObject): JsonObject {
  const { type, nullable, propertyOrdering: _, example: __, format, ref, defs, ...rest } = inCamelCase(given);
  const types = (Array.isArray(type) ? type : [type]).flatMap(
    (one) => enumName('type', one)?.toLowerCase() ?? [],
  );
  const known = types.filter((one) => one !== 'type_unspecified');
  const all = nullable === true && known.length > 0 && !known.includes('null') ? [...known, 'null'] : known;
  const bounds = BOUNDS.filter((name) => typeof rest[name] === 'string').map((name) => [
    name,
    Number(rest[name]),
  ]);
  return mapSubschemas(
    {
      ...(all.length === 0 ? {} : { type: all.length === 1 ? all[0] : all }),
      ...(format === undefined || format === 'enum' ? {} : { format }),
      ...rest,
      // The names that Vertex AI has for them.
      ...(typeof ref === 'string' ? { $ref: ref.replace('#/defs/', '#/$defs/') } : {}),
      ...(isObject(defs) ? { $defs: defs } : {}),
      ...Object.fromEntries(bounds),
      ...(all.includes('null') && Array.isArray(rest.enum) ? { enum: [...readArray(rest.enum), null] } : {}),
    },
    readSchema,
  );
}
