/** The documents of a request that is written for a provider, as citations in its answer count them. */
import { type CitableDocument, MAX_CITABLE_DOCUMENTS } from '../../canonical/citations.ts';
import type { CitedDocument } from '../../canonical/conversation.ts';
import { MAX_NAME_CHARS } from '../../shared/limits.ts';

/** The documents of the user's turns, in order. Behind one elsewhere none has an index of the client's. */
export class DocumentList {
  readonly #documents: (CitableDocument | null)[] = [];

  /** @param cited undefined: the document is sent without citations */
  add(cited: CitedDocument | undefined): void {
    if (this.#documents.length === MAX_CITABLE_DOCUMENTS) return;
    this.#documents.push(cited === undefined ? null : citable(cited));
  }

  /** Null is a document that no citation can name; undefined: all are. */
  take(): readonly (CitableDocument | null)[] | undefined {
    return this.#documents.some((document) => document !== null) ? this.#documents : undefined;
  }
}

/** The document as the client knows it. */
function citable({ index, name = '' }: CitedDocument): CitableDocument | null {
  if (index === undefined) return null;
  return { index, title: name === '' || name.length > MAX_NAME_CHARS ? null : name };
}
