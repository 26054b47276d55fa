/** Images, documents, audio and videos of a conversation: the client's part, its URL, and the data inside a `data:` URL. */
import { decodeBase64, decodePercent, encodeBase64 } from '../shared/encoding.ts';

export type Media =
  | {
      readonly type: 'image' | 'video' | 'document' | 'file';
      /** Absent: the provider has the file, under `fileId`. */
      readonly url?: string | undefined;
      readonly fileId?: string | undefined;
      /** The name of the file. */
      readonly name?: string | undefined;
      /** OpenAI's resolution of an image. */
      readonly detail?: unknown;
    }
  | { readonly type: 'audio' /** Base64. */; readonly data: string; readonly format: string };

/** The types of the parts in which chat has media. Reports name them. */
export const MEDIA_PARTS: Readonly<Record<Media['type'], string>> = {
  image: 'image_url',
  video: 'video_url',
  document: 'document_url',
  file: 'file',
  audio: 'input_audio',
};

/** `data:<type>[;parameters][;base64],` */
const DATA_URL_HEAD = /^data:([^;,]*)(?:;[^;,]*)*?(;base64)?,/i;

/** A head is a media type and a few parameters, so the search does not run over the data. */
const MAX_HEAD_CHARS = 256;

export interface DataUrl {
  readonly mediaType: string;
  readonly isBase64: boolean;
  readonly data: string;
}

/** @returns null if the URL is not a data URL */
export function parseDataUrl(url: string): DataUrl | null {
  const [head, mediaType = '', base64] = DATA_URL_HEAD.exec(url.slice(0, MAX_HEAD_CHARS)) ?? [];
  if (head === undefined) return null;
  // Providers refuse a spelling that browsers and clients use: "Unsupported MIME type: image/jpg".
  const type = /^image\/jpg$/i.test(mediaType) ? 'image/jpeg' : mediaType;
  return { mediaType: type, isBase64: base64 !== undefined, data: url.slice(head.length) };
}

/** Data with an invalid encoding is returned as it is. */
export function dataAsBase64({ isBase64, data }: DataUrl): string {
  const text = isBase64 ? null : decodePercent(data);
  return text === null ? data : encodeBase64(text);
}

/** Data with an invalid encoding is returned as it is. */
export function dataAsText({ isBase64, data }: DataUrl): string {
  return (isBase64 ? decodeBase64(data) : decodePercent(data)) ?? data;
}
