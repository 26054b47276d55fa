/** The feature `durable-responses`: Responses that are kept, each in its Durable Object. */
import type { KeyStore } from '../auth/keys.ts';
import type { FeatureModule, OpenGateway } from '../feature.ts';
import { log } from '../http/log.ts';
import { responses } from '../protocols/openai-responses/client.ts';
import {
  type ObjectPlace,
  type PlaceableNamespace,
  PlaceCheck,
  placeObjects,
} from '../settings/placement.ts';
import type { SettingsReader } from '../settings/reader.ts';
import type { Feature } from '../types.ts';
import { createExchange } from './exchange.ts';
import type { ResponseNamespace, ResponseStub } from './response-calls.ts';
import { responseObjectClass } from './response-object.ts';
import { durableRoutes, showKept } from './routes.ts';
import { readDurableSettings } from './settings.ts';
import { responsesOfUsers } from './user-responses.ts';

/** Keeps Responses where `responses` is `durable`. Its class `ResponseObject` is bound as `WEIR_RESPONSES`. */
export function durableResponses(): Feature<'durableResponses'> {
  const feature: FeatureModule<'durableResponses'> = {
    name: 'durableResponses',
    configure: (reader, { place }) => {
      const settings = readDurableSettings(reader);
      if (settings.responses === 'stateless') return {};
      const objects = reader.binding('WEIR_RESPONSES');
      if (objects !== undefined) {
        const namespace = decodeNamespace(objects, reader, place);
        return {
          routes: durableRoutes(namespace, settings),
          start: () => ({
            showKept: showKept(namespace, settings),
            userData: { kept: [responsesOfUsers(namespace)] },
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
function decodeNamespace(binding: object, reader: SettingsReader, place: ObjectPlace): ResponseNamespace {
  const objects = binding as PlaceableNamespace<ResponseStub>; // decode
  const store = (reader.binding('WEIR_KV') ?? null) as KeyStore | null; // decode
  return store === null ? objects : placeObjects(objects, place, new PlaceCheck(store, place));
}
