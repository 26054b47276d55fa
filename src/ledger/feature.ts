/** The feature `ledger`: limits of keys, and usage records in Durable Objects or through a Queue. */
import type { KeyStore } from '../auth/keys.ts';
import type { CompareCache } from '../completion/admission.ts';
import type { FeatureModule, FeatureParts, OpenGateway } from '../feature.ts';
import type { Ports } from '../http/context.ts';
import type { Erasure } from '../http/erasure.ts';
import { KvLedger } from '../metering/kv-ledger.ts';
import { ShownSpeeds } from '../metering/pricing/output-speeds.ts';
import { PromptHasher } from '../metering/prompt-hashes.ts';
import {
  type ObjectPlace,
  type PlaceableNamespace,
  PlaceCheck,
  placeObjects,
} from '../settings/placement.ts';
import type { SettingsReader } from '../settings/reader.ts';
import { callTwice } from '../shared/durable-objects.ts';
import type { Feature } from '../types.ts';
import { createAdmit, createAdmitEarly, settlingRecords } from './admission.ts';
import type { OperatorAlert } from './alerts/operator-alerts.ts';
import { ProviderWatch } from './alerts/provider-watch.ts';
import type { AlertSettings } from './alerts/send-alert.ts';
import { weeklySummary } from './alerts/weekly-summary.ts';
import { DeadLetters } from './dead-letters.ts';
import { objectErasures } from './erasures.ts';
import {
  ALERTS,
  FIRST_DIRECTORY,
  keyOfLedger,
  type LedgerNamespace,
  type LedgerStub,
} from './ledger-calls.ts';
import { LedgerClient } from './ledger-client.ts';
import { LedgerObject } from './ledger-object.ts';
import { consumeRecords, QueueSink, type RecordQueue } from './queue.ts';
import type { RoomLimits } from './records/key-records.ts';
import { ObjectLedger } from './records/object-ledger.ts';
import {
  type LedgerSettings,
  readAlertSettings,
  readLedgerSettings,
  readReservedMs,
  readRoomLimits,
} from './settings.ts';
import { KnownSpreads, shardHint } from './shards.ts';
import { deadLettersOfUsers, ledgersOfPeople, ledgersOfUsers, listKeyIds } from './user-stores.ts';

/**
 * Enforces the limits of keys, and stores usage records in Durable Objects where `ledger` is `object`. Its class `LedgerObject` is
 * bound as `WEIR_LEDGER`; a Queue that is bound as `USAGE_QUEUE` takes records first.
 */
export function ledger(): Feature<'ledger'> {
  const feature: FeatureModule<'ledger'> = {
    name: 'ledger',
    configure: (reader, { place }) => {
      const settings = { ...readLedgerSettings(reader), spreads: readSpreads(reader, place) };
      const bindings = decodeBindings(reader, place);
      if (settings.ledger === 'object' && bindings.ledgers === null) {
        const message = 'must be bound to the Durable Object LedgerObject, because LEDGER is object';
        reader.invalid('WEIR_LEDGER', message);
      }
      return { start: (ports) => start(settings, bindings, ports) };
    },
    objects: <Env>(gateway: OpenGateway<Env>) => ({
      // The object of erasures searches all stores, which the gateway knows.
      LedgerObject: class extends LedgerObject {
        protected override async stepErasure(erasure: Erasure): Promise<Erasure | null> {
          const env = this.env as unknown as Env; // decode
          await gateway.ready(env);
          return gateway.stepErasure(env)(erasure, (work) => this.ctx.waitUntil(work));
        }

        protected override async alertSettings(): Promise<AlertSettings> {
          const env = this.env as unknown as Env; // decode
          await gateway.ready(env);
          return readAlertSettings(gateway.settings(env));
        }

        protected override async roomLimits(): Promise<RoomLimits> {
          const env = this.env as unknown as Env; // decode
          await gateway.ready(env);
          return readRoomLimits(gateway.settings(env));
        }

        protected override async reservedMs(): Promise<number> {
          const env = this.env as unknown as Env; // decode
          await gateway.ready(env);
          return readReservedMs(gateway.settings(env));
        }
      },
    }),
  };
  return feature;
}

/** Null: `SHARDS=off`. */
function readSpreads(
  reader: SettingsReader,
  { jurisdiction, locationHint }: ObjectPlace,
): KnownSpreads | null {
  if (reader.plainOf('ledger').shards === 'off') return null;
  return new KnownSpreads(jurisdiction !== null || locationHint !== null);
}

interface Bindings {
  /** The ledger objects (`WEIR_LEDGER`), or null where none are bound. */
  readonly ledgers: LedgerNamespace | null;
  /** The queue for usage records (`USAGE_QUEUE`), or null where none is bound. */
  readonly queue: RecordQueue | null;
  /** Ledger objects have a bucket for records that leave them (`WEIR_ARCHIVE`). */
  readonly hasArchive: boolean;
}

/** Trusts the deployment's configuration that each binding has its documented type. */
function decodeBindings(reader: SettingsReader, place: ObjectPlace): Bindings {
  const bound = (reader.binding('WEIR_LEDGER') ?? null) as PlaceableNamespace<LedgerStub> | null; // decode
  const store = (reader.binding('WEIR_KV') ?? null) as KeyStore | null; // decode
  const ledgers =
    bound && store ? placeObjects(bound, place, new PlaceCheck(store, place), shardHint) : bound;
  const queue = (reader.binding('USAGE_QUEUE') ?? null) as RecordQueue | null; // decode
  return { ledgers, queue, hasArchive: reader.binding('WEIR_ARCHIVE') !== undefined };
}

function start(
  settings: LedgerSettings & { readonly spreads: KnownSpreads | null },
  { ledgers, queue, hasArchive }: Bindings,
  { store, log, random }: Ports,
): FeatureParts {
  const client = new LedgerClient(ledgers);
  const { hashSecret } = settings;
  const hasher = typeof hashSecret === 'string' ? new PromptHasher(hashSecret) : null;
  const limitLedger = { client, settings, spreads: settings.spreads, hasher, speeds: new ShownSpeeds() };
  const isObject = settings.ledger === 'object' && ledgers !== null;
  const ledger = isObject
    ? new ObjectLedger({ ledgers, recordDays: settings.recordDays, log })
    : new KvLedger(store);
  const deadLetters = new DeadLetters(store, ledger);
  const watch = ledgers === null ? null : new ProviderWatch(ledgers, random);
  const stores = isObject ? [deadLetters.ledger, deadLetters] : [ledger];
  return {
    limits: {
      admission: { admit: createAdmit(limitLedger), admitEarly: createAdmitEarly(limitLedger) },
      settle: (records, context) => {
        const settling = settlingRecords(records, limitLedger, context);
        return watch === null ? settling : watch.records(settling, context);
      },
      keyObjects: client,
    },
    records: {
      ledger,
      sinks: queue === null ? stores : [new QueueSink(queue), ...stores],
      status: async () => ({
        store: isObject ? 'object' : 'kv',
        has_queue: queue !== null,
        waiting_records: isObject ? await deadLetters.count() : 0,
        has_archive: isObject && hasArchive,
        full_keys: isObject
          ? await callTwice(
              () => ledgers.getByName(FIRST_DIRECTORY),
              (directory) => directory.fullLedgers(),
            ).then((full) => full.map((one) => ({ ...one, key_id: keyOfLedger(one.key_id) })))
          : [],
      }),
      compareCache: isObject ? createCompareCache(client) : null,
    },
    userData: {
      ledger: [...(ledgers === null ? [] : [ledgersOfUsers(ledgers)]), deadLettersOfUsers(deadLetters)],
      ...(ledgers !== null && {
        people: [ledgersOfPeople(ledgers)],
        keyIdsAfter: listKeyIds(ledgers),
        erasures: objectErasures(ledgers),
      }),
    },
    ...(watch !== null && {
      circuitOpened: (opened, context) => watch.circuitOpened(opened, context),
    }),
    queue: (messages) => consumeRecords(messages, { sinks: stores, log }),
    scheduled: async (dueAt) => {
      log({ event: 'dead_letters_stored', ...(await deadLetters.replay()) });
      if (ledgers !== null && settings.alerts.target !== null)
        await sendSummary(ledgers, await weeklySummary(ledger, store, dueAt));
    },
  };
}

async function sendSummary(ledgers: LedgerNamespace, summary: OperatorAlert | null): Promise<void> {
  if (summary === null) return;
  await callTwice(
    () => ledgers.getByName(ALERTS),
    (object) => object.noteAlert(summary),
  );
}

function createCompareCache(client: LedgerClient): CompareCache {
  return async (context, keyId, session, sent) => {
    const name = context.known.admittedBy ?? keyId;
    const compared = await client.call(context, name, (object) => object.compareCache(session, sent));
    return compared.kind === 'ok' ? compared.value : null;
  };
}
