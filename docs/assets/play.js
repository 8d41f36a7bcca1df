// A reader plays on charts: a mark that is pointed at, tapped, or reached by the arrow keys tells what
// it stands for, and under a pay-off map a shape is chosen. `site.js` fetches this when a chart comes
// near. Without it a browser shows the same words on hover, and the table under a chart has them all.
(() => {
  const NEAR = 24; // pixels from a mark that still mean it
  const LARGE = 40; // pixels: what is larger both ways, such as a line, is meant only where it is hit
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  const make = (tag, parent, set = {}) => parent.appendChild(Object.assign(document.createElement(tag), set));

  // The marks of a picture by what they tell. That of a phone has the numbers of the texts beside it.
  function marksOf(svg, texts) {
    const marks = new Map();
    for (const part of svg.querySelectorAll("[data-m], :has(> title)")) {
      const title = part.querySelector("title");
      const text = title ? title.textContent : texts[part.dataset.m];
      title?.remove(); // or the browser would say it too
      marks.set(text, [...(marks.get(text) ?? []), part]);
    }
    return marks;
  }

  const union = (boxes) => {
    const [left, top] = ["left", "top"].map((side) => Math.min(...boxes.map((box) => box[side])));
    const [right, bottom] = ["right", "bottom"].map((side) => Math.max(...boxes.map((box) => box[side])));
    return { left, top, right, bottom };
  };
  const far = (box, x, y) =>
    Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
  const middle = (box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2];

  function play(chart) {
    const pictures = []; // of each panel its marks, in the picture for a desk and in that for a phone
    for (const svg of chart.querySelectorAll("svg:not([data-narrow])")) {
      const marks = marksOf(svg), narrow = svg.nextElementSibling;
      const both = [[svg, marks]];
      if (narrow?.matches("svg[data-narrow]")) both.push([narrow, marksOf(narrow, [...marks.keys()])]);
      pictures.push(both);
    }
    if (!pictures.some(([[, marks]]) => marks.size)) return;
    const ring = make("div", chart, { className: "ring", hidden: true });
    const told = make("div", chart, { className: "told", role: "status" });
    const table = chart.parentElement.querySelector("details.twin table");
    let at = null;
    chart.setAttribute("role", "group");
    chart.setAttribute("aria-label", `${chart.getAttribute("aria-label")} Arrow keys go from mark to mark.`);
    chart.tabIndex = 0;

    // The marks that can be seen now, each with its text, its parts and its place.
    function seen() {
      return pictures.flatMap((both, panel) => {
        const shown = both.find(([svg]) => svg.getBoundingClientRect().width);
        return [...(shown?.[1] ?? [])].map(([text, parts], index) => {
          const boxes = parts.map((part) => part.getBoundingClientRect());
          const small = boxes.filter((box) => Math.min(box.width, box.height) < LARGE);
          const dot = small.length ? small : boxes;
          return { text, parts, panel, index, small, box: union(dot) };
        });
      });
    }

    function rowsOf(text) {
      const name = text.split(": ")[0];
      const named = (row) => row.cells[0].textContent.replace(/^\d+\. /, "") === name;
      const found = table ? [...table.tBodies].flatMap((body) => [...body.rows]).filter(named) : [];
      return found.length === 1 ? found : [];
    }

    function show(mark) {
      if (at?.text === mark?.text && at?.panel === mark?.panel) return;
      for (const row of at ? rowsOf(at.text) : []) row.classList.remove("at");
      at = mark;
      ring.hidden = !mark;
      told.replaceChildren(); // it stays, or a screen reader would not read out what comes next
      if (!mark) return;
      for (const row of rowsOf(mark.text)) row.classList.add("at");
      const [name, ...rest] = mark.text.split(": ");
      make("b", told, { textContent: name });
      if (rest.length) told.append(` ${rest.join(": ")}`);
      const frame = chart.getBoundingClientRect(), { left, top, right, bottom } = mark.box;
      const x = left - frame.left, y = top - frame.top;
      Object.assign(ring.style, { left: `${x - 4}px`, top: `${y - 4}px` });
      Object.assign(ring.style, { width: `${right - left + 8}px`, height: `${bottom - top + 8}px` });
      const { width, height } = told.getBoundingClientRect();
      const free = Math.min(Math.max((x * 2 + right - left - width) / 2, 0), frame.width - width);
      const above = y - height - 10;
      told.style.left = `${Math.max(free, 0)}px`;
      told.style.top = `${above + frame.top > 60 ? above : bottom - frame.top + 10}px`;
    }

    function nearest({ target, clientX, clientY }) {
      const marks = seen(), hit = marks.find((mark) => mark.parts.includes(target));
      if (hit) return hit;
      let found = null, least = NEAR;
      for (const mark of marks) {
        for (const box of mark.small) {
          const away = far(box, clientX, clientY);
          if (away < least) [found, least] = [mark, away];
        }
      }
      return found;
    }

    function next(key) {
      const marks = seen(), [first] = marks;
      if (key === "Home" || (!at && key in ARROWS)) return first;
      if (key === "End") return marks.at(-1);
      const here = marks.find((mark) => mark.text === at.text && mark.panel === at.panel) ?? first;
      const [dx, dy] = ARROWS[key], [x, y] = middle(here.box);
      let found = here, least = Infinity;
      for (const mark of marks) {
        const [right, down] = middle(mark.box).map((each, axis) => each - [x, y][axis]);
        const along = right * dx + down * dy, aside = Math.abs(right * dy) + Math.abs(down * dx);
        if (along > 0.5 && along + 2 * aside < least) [found, least] = [mark, along + 2 * aside];
      }
      return found;
    }

    chart.addEventListener("pointermove", (event) => event.pointerType === "mouse" && show(nearest(event)));
    chart.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && show(null));
    chart.addEventListener("click", (event) => {
      const mark = nearest(event);
      show(mark);
      if (mark) chart.dispatchEvent(new CustomEvent("chosen", { detail: mark }));
    });
    chart.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return show(null);
      if (event.key === "Enter" && at) chart.dispatchEvent(new CustomEvent("chosen", { detail: at }));
      if (!(event.key in ARROWS) && event.key !== "Home" && event.key !== "End") return;
      event.preventDefault();
      show(next(event.key));
    });
    chart.addEventListener("blur", () => show(null));
    document.addEventListener("pointerdown", ({ target }) => chart.contains(target) || show(null));
    addEventListener("resize", () => show(null));
    const choose = chart.nextElementSibling;
    if (choose?.matches(".choose")) chooser(choose, chart, pictures);
  }

  // Two coordinates to choose, and what each variant's map tells of the cell there.
  function chooser(box, chart, pictures) {
    const { axes, panels } = JSON.parse(box.dataset.cells);
    const shape = make("p", box), list = make("ul", box);
    list.setAttribute("aria-live", "polite");
    shape.append("Your shape: ");
    const selects = axes.map(([name, values]) => {
      const label = make("label", shape, { textContent: `${name} ` }), select = make("select", label);
      for (const value of values) make("option", select, { textContent: value });
      return select;
    });
    const texts = pictures.map(([[, marks]]) => [...marks.keys()]);

    function read() {
      list.replaceChildren();
      panels.forEach(([name, across, up], panel) => {
        const [column, row] = [across, up].map((values, axis) => values.indexOf(selects[axis].value));
        const text = column < 0 || row < 0 ? "" : texts[panel][row * across.length + column];
        const line = make("li", list);
        make("code", line, { textContent: name });
        line.append(` ${text.slice(text.indexOf(": ") + 2) || "not in the recording"}`);
        for (const [svg, marks] of pictures[panel]) {
          svg.querySelector(".chosen")?.classList.remove("chosen");
          if (text) marks.get(text)?.[0].classList.add("chosen");
        }
      });
    }

    shape.addEventListener("change", read);
    chart.addEventListener("chosen", ({ detail: { panel, text } }) => {
      const [, across, up] = panels[panel], index = texts[panel].indexOf(text);
      selects[0].value = across[index % across.length];
      selects[1].value = up[Math.floor(index / across.length)];
      read();
    });
    read();
  }

  for (const chart of document.querySelectorAll(".chart")) play(chart);
})();
