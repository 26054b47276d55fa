/** Writes images, documents and videos as Converse takes them: as data, or from S3. */
import type { CitedDocument } from '../../canonical/conversation.ts';
import { dataAsBase64, MEDIA_PARTS, type Media, parseDataUrl } from '../../canonical/media.ts';
import type { TranslationReport } from '../../request-translation/dropped-fields.ts';
import { decodeBase64 } from '../../shared/encoding.ts';
import { type JsonObject, objectOf, ownValue, readText } from '../../shared/json.ts';
import { lazyPattern } from '../../shared/lazy-pattern.ts';

/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ImageBlock.html and _DocumentBlock, _VideoBlock (2026-11-28). */
const IMAGES: Readonly<Record<string, string>> = {
  ...{ 'image/png': 'png', 'image/jpeg': 'jpeg', 'image/gif': 'gif', 'image/webp': 'webp' },
};
const OFFICE = 'application/vnd.openxmlformats-officedocument';
const DOCUMENTS: Readonly<Record<string, string>> = {
  ...{ 'application/pdf': 'pdf', 'text/csv': 'csv', 'text/html': 'html', 'text/plain': 'txt' },
  ...{ 'text/markdown': 'md', 'application/msword': 'doc', 'application/vnd.ms-excel': 'xls' },
  ...{ [`${OFFICE}.wordprocessingml.document`]: 'docx', [`${OFFICE}.spreadsheetml.sheet`]: 'xlsx' },
};
const VIDEOS: Readonly<Record<string, string>> = {
  ...{ 'video/mp4': 'mp4', 'video/quicktime': 'mov', 'video/webm': 'webm', 'video/mpeg': 'mpeg' },
  ...{ 'video/x-matroska': 'mkv', 'video/x-flv': 'flv', 'video/x-ms-wmv': 'wmv', 'video/3gpp': 'three_gp' },
};

/** Longer names of documents are refused, as are other characters, and two spaces in a row. */
const MAX_NAME_CHARS = 200;
const DEFAULT_NAME = 'document';

/** The names of the documents of one request, which must differ. */
export class DocumentNames {
  readonly #used = new Set<string>();

  /** The name in AWS's alphabet: letters, digits, single spaces, hyphens, parentheses and brackets. */
  next(given: string | undefined, format: string): string {
    const base = (given ?? '').toLowerCase().endsWith(`.${format}`)
      ? given?.slice(0, -format.length - 1)
      : given;
    const plain = (base ?? '')
      .slice(0, MAX_NAME_CHARS * 4)
      .normalize('NFKD')
      .replace(MARKS(), '')
      .replace(/[^A-Za-z0-9\s\-()[\]]+/g, '-')
      .replace(/\s+/g, ' ')
      .slice(0, MAX_NAME_CHARS - SUFFIX_CHARS)
      .trim();
    const name = /[A-Za-z0-9]/.test(plain) ? plain : DEFAULT_NAME;
    let unique = name;
    for (let i = 2; this.#used.has(unique); i++) unique = `${name} (${i})`;
    this.#used.add(unique);
    return unique;
  }
}

/** Of a number that tells equal names apart. */
const SUFFIX_CHARS = 8;

/** A block of Converse, or none: it is refused. */
export function writeMedia(media: Media, names: DocumentNames, report: TranslationReport): JsonObject[] {
  if (media.type === 'audio') return refused(media, report);
  const url = media.url ?? '';
  const inline = parseDataUrl(url);
  const type = (inline?.mediaType ?? typeOfName(media.name ?? url)).toLowerCase();
  const image = ownValue(IMAGES, type);
  const video = ownValue(VIDEOS, type);
  // A text may have any type; Bedrock takes it as `txt`.
  const document = ownValue(DOCUMENTS, type) ?? (type.startsWith('text/') ? 'txt' : undefined);
  const source =
    inline === null
      ? url.startsWith('s3://')
        ? { s3Location: { uri: url } }
        : undefined
      : { bytes: dataAsBase64(inline) };
  if (source === undefined) return refused(media, report);
  if (image !== undefined) return [{ image: { format: image, source } }];
  if (video !== undefined) return [{ video: { format: video, source } }];
  if (document === undefined || media.type === 'image' || media.type === 'video')
    return refused(media, report);
  return [{ document: { format: document, name: names.next(media.name, document), source } }];
}

/**
 * The written document with its citations enabled; null: the request does not ask for citations, or the format of the
 * document has none. "Only txt and pdf formats are supported when citations are enabled", and the bytes of a text are
 * read as those of a PDF: boto/boto3#4726, 2026-02-24.
 */
export function withCitations(
  [written]: readonly JsonObject[],
  cited: CitedDocument | undefined,
): JsonObject[] | null {
  if (cited === undefined) return null;
  const { context } = cited;
  const document = objectOf(written?.document);
  if (document.format === 'pdf') return [{ document: { ...document, ...citing(context) } }];
  const text =
    document.format === 'txt' ? decodeBase64(readText(objectOf(document.source).bytes) ?? '') : null;
  return text ? [{ document: { ...document, source: { text }, ...citing(context) } }] : null;
}

/** A document to be cited that came as text; null: the block is no such document. Recorded: bedrock--claude-citation. */
export function citedText(cited: CitedDocument | undefined, names: DocumentNames): JsonObject[] | null {
  const { name, context, text = '', chunks } = cited ?? {};
  if (text.trim() === '') return null;
  // A text in parts is cited by them: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_DocumentSource.html (2026-11-29).
  const source = chunks === undefined ? { text } : { content: chunks.map((chunk) => ({ text: chunk })) };
  return [{ document: { format: 'txt', name: names.next(name, 'txt'), source, ...citing(context) } }];
}

function citing(context: string | undefined): JsonObject {
  return { ...(context === undefined ? {} : { context }), citations: { enabled: true } };
}

function refused({ type }: Media, report: TranslationReport): JsonObject[] {
  report.refuse(`messages.content.${MEDIA_PARTS[type]}`);
  return [];
}

/** The type that the end of a file's name stands for; empty: none is known. */
function typeOfName(name: string): string {
  const ending = /\.([a-z0-9]{2,5})$/i.exec(name)?.[1]?.toLowerCase() ?? '';
  const format = ending === 'jpg' ? 'jpeg' : ending;
  const all = [...Object.entries(IMAGES), ...Object.entries(DOCUMENTS), ...Object.entries(VIDEOS)];
  return all.find(([, one]) => one === format)?.[0] ?? '';
}

const MARKS = lazyPattern('\\p{M}+', 'gu');
