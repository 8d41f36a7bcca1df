// The machine that a reader chose in the header is kept, and so is their place on the page. Without
// this script the switch is a list of plain links. The theme gives `__md_get` and `__md_set`.
(() => {
  const { others } = document.currentScript.dataset;
  const chosen = () => {
    try {
      return __md_get("machine");
    } catch {
      return null; // nothing may be kept in this browser
    }
  };

  // Only pages at the root of the site lead elsewhere, so nobody is sent in a circle.
  const [, url] = (others ?? "").match(new RegExp(`(?:^| )${chosen()} (\\S+)`)) ?? [];
  if (url) {
    location.replace(new URL(url + location.hash, location));
    return;
  }

  // Where the reader is: at what the address names if that can be seen, else in a section.
  function place() {
    const top = document.querySelector(".md-header")?.getBoundingClientRect().bottom ?? 0;
    const named = document.querySelector(":target")?.getBoundingClientRect();
    if (named && named.bottom > top && named.top < innerHeight) return location.hash;
    const headings = document.querySelectorAll(".md-content :is(h2, h3, h4, h5, h6)[id]");
    const passed = [...headings].filter(
      (each) => each.checkVisibility() && each.getBoundingClientRect().top <= top + innerHeight / 4,
    );
    return passed.length && scrollY ? `#${passed.at(-1).id}` : "";
  }

  addEventListener("DOMContentLoaded", () => {
    const fold = document.querySelector(".machines details");
    if (!fold) return;
    for (const link of fold.querySelectorAll("a")) {
      const choose = () => {
        __md_set("machine", link.dataset.machine);
        link.hash = place();
      };
      link.addEventListener("click", choose);
      link.addEventListener("auxclick", choose); // in a tab of its own
    }
    addEventListener("click", (event) => {
      if (!fold.contains(event.target)) fold.open = false;
    });
    fold.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !fold.open) return;
      fold.open = false;
      fold.querySelector("summary").focus();
    });
  });
})();
