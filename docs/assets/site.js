// All a page needs works without this. Folds are opened before printing, where nothing can be
// unfolded, and by a link to what is in them, which older browsers do not do by themselves.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details:is(.twin, .sources)")) fold.open = true;
});

function reveal() {
  const named = document.getElementById(location.hash.slice(1));
  const fold = named?.closest("details:not([open])");
  if (!fold) return;
  fold.open = true;
  named.scrollIntoView();
}

addEventListener("hashchange", reveal);
addEventListener("DOMContentLoaded", reveal);

// What stands on hover is shown by a tap where nothing hovers.
addEventListener("click", ({ target }) => {
  if (matchMedia("(hover: none)").matches) target.closest("figure [title]:not(a)")?.classList.toggle("told");
});

// What readers play on charts with is fetched when the first one comes near.
const assets = document.currentScript.src;
const playable = [...document.querySelectorAll(".chart")].filter((chart) => chart.querySelector("svg title"));
const near = new IntersectionObserver((seen) => {
  if (!seen.some((each) => each.isIntersecting)) return;
  near.disconnect();
  document.head.append(Object.assign(document.createElement("script"), { src: new URL("play.js", assets) }));
}, { rootMargin: "100%" });
for (const chart of playable) near.observe(chart);
