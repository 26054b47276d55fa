/**
 * How the site's search ranks, for the site and for the questions that it has to answer. VitePress writes these
 * functions into the page as text.
 */

export const SEARCH = {
  options: {
    /** Words of a question that say nothing of its subject are not searched. */
    processTerm: (term: string): string | null =>
      /^(?:a|about|an|and|are|be|can|did|do|does|for|from|how|i|in|is|it|mean|means|my|not|of|on|or|that|the|there|this|to|was|we|were|what|when|where|which|who|why|will|with|me|you|your)$/i.test(
        term,
      )
        ? null
        : term.toLowerCase(),
  },
  searchOptions: {
    fuzzy: 0.2,
    prefix: true,
    boost: { title: 4, text: 2, titles: 1 },
    /** Pages for people who run or call Weir come before its history and its inside. */
    boostDocument: (id: string): number =>
      /^\/(?:changelog|decisions|contract|glossary|architecture|relay|conformance|contributing)/.test(id)
        ? 0.3
        : 1,
  },
};
