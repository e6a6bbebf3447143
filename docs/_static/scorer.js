// Sphinx's own weights, but pages that name everything come last.
var Scorer = {
  score: ([page, , , , score]) => (/^(changelog|modules)$/.test(page) ? score / 10 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
