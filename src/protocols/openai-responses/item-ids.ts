/** The ids of items that the gateway keeps: an item's id contains that of its response. */
import { isObject, type JsonObject, omit, readArray, readText } from '../../shared/json.ts';

/*
 * The forms, with 32 hex digits of the response's id:
 * - `msg_<digits>_0`: an item that the gateway wrote.
 * - `msg_<digits>_in0`: an item of a request that came without an id.
 * - `msg_<digits>_openai.msg_68ab`: an item that passed from a provider, with the id that it has there. The provider accepts encrypted
 *   reasoning under this id only ("Encrypted content item_id did not match the target item id": maximhq/bifrost#5186, 2026-06), or
 *   under none.
 */
const ITEM_ID = /^[a-z]+_([0-9a-f]{32})_/;
const INPUT_ID = /^[a-z]+_[0-9a-f]{32}_in\d+$/;
const PASSED_ID = /^[a-z]+_[0-9a-f]{32}_([a-z0-9_-]+)\.(.+)$/s;

/** The id of the response that an item belongs to, or undefined. */
export function responseOfItem(id: string): string | undefined {
  const [, digits] = ITEM_ID.exec(id) ?? [];
  return digits === undefined ? undefined : `resp_${digits}`;
}

/** @param index the place in the request's input */
export function inputItemId(type: string, responseId: string, index: number): string {
  return `${PREFIXES[type] ?? 'item'}_${digitsOf(responseId)}_in${index}`;
}

const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fco',
  reasoning: 'rs',
};

/** The id under which the gateway keeps an item of a provider. */
export function passedItemId(id: string, responseId: string, provider: string): string {
  const [prefix = 'item'] = /^[a-z]+(?=_)/.exec(id) ?? [];
  return `${prefix}_${digitsOf(responseId)}_${provider}.${id}`;
}

function digitsOf(responseId: string): string {
  return responseId.slice('resp_'.length);
}

interface PassedId {
  readonly provider: string;
  /** The id at the provider. */
  readonly id: string;
}

function readPassedId(id: unknown): PassedId | null {
  const [, provider, own] = PASSED_ID.exec(readText(id) ?? '') ?? [];
  return provider === undefined || own === undefined ? null : { provider, id: own };
}

/**
 * Items in the form that a provider accepts: the provider's own items get their ids there back, and all other kept items have none.
 * Reasoning that this provider can't read is dropped.
 * @returns `items` itself if nothing changes
 */
export function restoreItems(items: readonly unknown[], provider: string): readonly unknown[] {
  if (!items.some(hasGivenId)) return items;
  const isLost = (item: unknown) => isObject(item) && isUnreadable(item, provider);
  // The provider checks by id that a call has its reasoning, so without the reasoning the other items have no ids.
  const hasIds = !items.some((item) => isLost(item) && readPassedId(objectId(item))?.provider === provider);
  return items.flatMap((item) => (isLost(item) ? [] : [restore(item, hasIds ? provider : null)]));
}

function objectId(item: unknown): unknown {
  return isObject(item) ? item.id : undefined;
}

function hasGivenId(item: unknown): boolean {
  if (!isObject(item)) return false;
  const ids = [item.id, item.approval_request_id];
  return ids.some((id) => readPassedId(id) !== null || INPUT_ID.test(readText(id) ?? ''));
}

/** Another provider's reasoning, or reasoning whose content the provider has not stored either. */
function isUnreadable(item: JsonObject, provider: string): boolean {
  if (item.type !== 'reasoning') return false;
  const passed = readPassedId(item.id);
  if (passed === null) return false;
  const hasContent = readText(item.encrypted_content) !== undefined || readArray(item.content).length > 0;
  return passed.provider !== provider || !hasContent;
}

/** @param provider whose ids are restored; null: none are */
function restore(item: unknown, provider: string | null): unknown {
  if (!isObject(item) || !hasGivenId(item)) return item;
  const passed = readPassedId(item.id);
  const request = readPassedId(item.approval_request_id);
  const named = request === null ? item : { ...item, approval_request_id: request.id };
  if (passed?.provider === provider) return { ...named, id: passed?.id };
  return passed !== null || INPUT_ID.test(readText(item.id) ?? '') ? omit(named, 'id') : named;
}
