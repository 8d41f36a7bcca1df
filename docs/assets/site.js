// All a page needs works without this. A chart's folded table is opened by a link to it, and
// before printing, where nothing can be unfolded.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details.twin")) fold.open = true;
});
