/** The mark of whoever made an opaque token (A7, I7). */
import { expect, test } from 'vitest';
import { readProviderTag, tagProvider } from '../../src/canonical/provider-tag.ts';

test('A7 I7 markMaker, a payload with colons: readMaker gives both back', () => {
  const marked = { provider: 'anthropic', payload: 'a:b:c==' };
  expect(tagProvider(marked)).toBe('weir1:anthropic:a:b:c==');
  expect(readProviderTag(tagProvider(marked))).toEqual(marked);
});

test.each([
  undefined,
  null,
  7,
  '',
  'rs_123',
  'weir1:',
  'weir1:anthropic',
  'weir2:anthropic:x',
  'x weir1:a:b',
])('A7 readMaker, %s: nobody is named', (text) => {
  expect(readProviderTag(text)).toBeNull();
});
