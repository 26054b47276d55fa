/** Makes the OpenAPI document of the deployed Worker from its table of routes and `operations.ts`. */
import { dashboardRoutes, docsRoutes } from '../../src/dashboard/dashboard.ts';
import { durableRoutes } from '../../src/durable-responses/routes.ts';
import { readDurableSettings } from '../../src/durable-responses/settings.ts';
import { PRIVACY_ROUTES } from '../../src/privacy/routes.ts';
import { type HttpRoute, ROUTES } from '../../src/routes.ts';
import { SettingsReader } from '../../src/settings/reader.ts';
import { VERSION } from '../../src/settings/version.ts';
import type { JsonObject } from '../simulator/json.ts';
import { OPERATIONS, type Operation, OTHER_SPELLINGS } from './operations.ts';
import { COMPONENTS, ref } from './schemas.ts';

const MAX_PARAMETER_CHARS = 200;

/** The routes of the core, and those that features add. Their handlers are not called. */
function allRoutes(): readonly HttpRoute[] {
  const objects = {
    getByName: () => {
      throw new Error('The document needs no objects');
    },
  };
  const durable = durableRoutes(objects, readDurableSettings(new SettingsReader({})));
  return [
    ...ROUTES,
    ...durable,
    ...PRIVACY_ROUTES,
    ...dashboardRoutes(() => ''),
    ...docsRoutes(async () => ''),
  ];
}

/** Methods of routes without an operation, and operations without a route, as lines for a person. */
export function routeProblems(): readonly string[] {
  const routed = new Set<string>();
  for (const { path, methods } of allRoutes())
    for (const method of Object.keys(methods))
      if (!OTHER_SPELLINGS.includes(path)) routed.add(`${method} ${path}`);
  const described = new Set(OPERATIONS.map(routeOf));
  return [
    ...[...routed]
      .filter((route) => !described.has(route))
      .map(
        (route) => `${route} is not described: add it to tools/openapi/operations.ts, then npm run openapi`,
      ),
    ...[...described]
      .filter((route) => !routed.has(route))
      .map((route) => `${route} is described in tools/openapi/operations.ts, and is no route`),
  ];
}

/** The method, and the path as the table of routes has it. */
function routeOf({ method, path, route }: Operation): string {
  return `${method} ${route ?? path.replace(/^\/v1(?=\/)/, '').replaceAll(/\{(\w+)\}/g, ':$1')}`;
}

function openApiDocument(): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const operation of OPERATIONS) {
    const { path, method } = operation;
    paths[path] = { ...paths[path], [method.toLowerCase()]: write(operation) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Weir',
      version: VERSION,
      license: { name: 'MIT', identifier: 'MIT' },
      description:
        'One endpoint in front of many LLM providers. All paths are below BASE_PATH; those with /v1 also work without it.',
    },
    servers: [{ url: '{address}', variables: { address: { default: 'http://127.0.0.1:8787' } } }],
    paths,
    components: {
      schemas: COMPONENTS,
      securitySchemes: {
        caller: {
          type: 'http',
          scheme: 'bearer',
          description: 'a gateway key; also in api-key, x-api-key or x-goog-api-key',
        },
        admin: { type: 'http', scheme: 'bearer', description: 'ADMIN_TOKEN' },
      },
    },
  };
}

function write({
  method,
  path,
  summary,
  tag,
  auth,
  query = {},
  body,
  status = 200,
  returns,
  streams,
  csv,
  mediaType = 'text/html',
  errors = 'Error',
}: Operation): JsonObject {
  const json = (schema: JsonObject) => ({ 'application/json': { schema } });
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', maxLength: MAX_PARAMETER_CHARS },
  }));
  const inQuery = Object.entries(query).map(([name, description]) => ({
    name,
    in: 'query',
    description,
    schema: { type: 'string' },
  }));
  const parameters = [...inPath, ...inQuery];
  const content = {
    ...(returns === null ? { [mediaType]: {} } : json(returns)),
    ...(streams && { 'text/event-stream': {} }),
    ...(csv && { 'text/csv': {} }),
  };
  return {
    operationId: `${method.toLowerCase()}${path.replace(/^\/v1(?=\/)/, '').replace(/[/{}:_-]+(\w?)/g, (_, next: string) => next.toUpperCase())}`,
    summary,
    tags: [tag],
    security: auth === 'none' ? [] : auth === 'admin' ? [{ admin: [] }] : [{ caller: [] }, { admin: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: json(body) } }),
    responses: {
      [status]: { description: 'Success', content },
      ...(auth !== 'none' && {
        default: { description: 'An error: docs/errors.md', content: json(ref(errors)) },
      }),
    },
  };
}

/** The text of `docs/openapi.json`. */
export function openApiText(): string {
  return `${JSON.stringify(openApiDocument(), null, 2)}\n`;
}
