/** Tests base64 and percent-encoding: what is valid, and what decodes to null. */
import { describe, expect, test } from 'vitest';
import { decodeBase64, decodePercent, encodeBase64 } from '../../src/shared/encoding.ts';

describe('B2 base64 and percent-encoding', () => {
  test.each(['', 'a', 'ab', 'abc', 'é水🌊', '\ufeffa'])('%j: as it was', (text) => {
    expect(decodeBase64(encodeBase64(text))).toBe(text.replace('\ufeff', ''));
    expect(decodePercent(encodeURIComponent(text))).toBe(text);
  });

  test.each(['QUI=0', 'Q', '!', 'Q=Q', 'é'])('%j is not base64', (text) =>
    expect(decodeBase64(text)).toBeNull(),
  );
  test.each(['%', '%4', '%4g', '%ff', '%ed%a0%80'])('%j is not valid', (text) =>
    expect(decodePercent(text)).toBeNull(),
  );
  test.each(['QQ', 'QQ==', ' Q Q ', 'QUI='])('%j is base64 that the engine accepts', (text) => {
    expect(decodeBase64(text)).toBe(Buffer.from(atob(text), 'latin1').toString());
  });
});
