/** The feature `durable-responses`: Responses that are kept, each in its Durable Object. */
import type { FeatureModule, OpenGateway } from '../feature.ts';
import { log } from '../http/log.ts';
import { responses } from '../protocols/openai-responses/client.ts';
import type { Feature } from '../types.ts';
import { createExchange } from './exchange.ts';
import type { ResponseNamespace } from './response-calls.ts';
import { responseObjectClass } from './response-object.ts';
import { durableRoutes, showKept } from './routes.ts';
import { readDurableSettings } from './settings.ts';
import { responsesOfUsers } from './user-responses.ts';

/** Keeps Responses where `responses` is `durable`. Its class `ResponseObject` is bound as `WEIR_RESPONSES`. */
export function durableResponses(): Feature<'durableResponses'> {
  const feature: FeatureModule<'durableResponses'> = {
    name: 'durableResponses',
    configure: (reader) => {
      const settings = readDurableSettings(reader);
      if (settings.responses === 'stateless') return {};
      const objects = reader.binding('WEIR_RESPONSES');
      if (objects !== undefined) {
        const namespace = decodeNamespace(objects);
        return {
          routes: durableRoutes(namespace, settings),
          start: () => ({
            showKept: showKept(namespace, settings),
            keptUserStores: [responsesOfUsers(namespace)],
          }),
        };
      }
      const message = 'must be bound to the Durable Object ResponseObject, because RESPONSES is durable';
      reader.invalid('WEIR_RESPONSES', message);
      return {};
    },
    objects: <Env>(gateway: OpenGateway<Env>) => {
      const exchangeOf = (env: Env) => {
        const ports = { now: () => Date.now(), log };
        return createExchange(
          (request, waitUntil) => gateway.newContext(env)(request, responses, waitUntil),
          ports,
        );
      };
      return { ResponseObject: responseObjectClass(exchangeOf, gateway.ready) };
    },
  };
  return feature;
}

/** Trusts the deployment's configuration that the binding has its documented type. */
function decodeNamespace(binding: object): ResponseNamespace {
  return binding as ResponseNamespace; // decode
}
