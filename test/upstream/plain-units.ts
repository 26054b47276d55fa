/** A plain reading of the characters of a text that count where it is compared (E5). */

export interface PlainUnit {
  readonly unit: string;
  /** White space and control characters are one space each. */
  readonly folded: string;
  readonly at: number;
  /** Of a surrogate pair. */
  readonly isHalf: boolean;
  readonly isBlank: boolean;
}

/** Without marks, formats, backslashes and halves of pairs. */
export function plainUnits(text: string): readonly PlainUnit[] {
  return text.split('').flatMap((unit, at) => {
    const isHalf = /[\ud800-\udfff]/.test(unit);
    const isPaired = /^[\ud800-\udbff][\udc00-\udfff]$/.test(
      unit < '\udc00' ? text.slice(at, at + 2) : text.slice(Math.max(0, at - 1), at + 1),
    );
    if (isHalf ? !isPaired : /[\p{M}\p{Cf}\\\ufffd]/u.test(unit)) return [];
    const isBlank = !isHalf && /[\s\p{Cc}]/u.test(unit);
    const folded = isBlank ? ' ' : isHalf ? unit : (unit.normalize('NFKD').toLowerCase()[0] ?? '');
    return [{ unit, folded, at, isHalf, isBlank }];
  });
}
