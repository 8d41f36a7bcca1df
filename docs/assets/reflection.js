// A day that looks back, where scripts run: a reader's own machine gives the quiz's keys, sureness is
// held against being right, the checklist keeps score, and answers are kept in this browser and saved
// as Markdown. Without this all of it can be read. Nothing is sent.
(() => {
  const KEY = "anatomy-reflection ", GUESS = "anatomy-guess ";
  const read = (key, otherwise) => JSON.parse(localStorage.getItem(key)) ?? otherwise;
  const keep = (name, value) => localStorage.setItem(KEY + name, JSON.stringify(value));
  const make = (tag, props, ...inside) => {
    const element = Object.assign(document.createElement(tag), props);
    element.append(...inside);
    return element;
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const text = (element) => element?.textContent.replace(/\s+/g, " ").replace("¶", "").trim() ?? "";
  const TERA = 1e12;  // readers type terabytes and teraflops
  // A key of anatomy/chapters/reflection/keys.py; not a number where one that it needs is not given.
  const value = ([factor, powers], given) =>
    Object.entries(powers).reduce((product, [name, power]) => product * given[name] ** power, factor);

  function follow(given) {
    for (const place of all(".yours")) {
      const key = value(JSON.parse(place.dataset.formula), given), { unit } = place.dataset;
      place.hidden = !Number.isFinite(key);
      const said = Number(key.toPrecision(3)).toString();
      place.replaceChildren(", with your numbers ", make("b", {}, unit === "%" ? `${said}%` : `${said} ${unit}`));
    }
    dispatchEvent(new Event("anatomy-own"));
  }

  // What the command `machine --format json` prints: limits, measured or else the maker's.
  function pasted(json, fields) {
    const { limits } = JSON.parse(json);
    const found = fields.map(({ name, limit }) => {
      const { measured, datasheet } = limits.find((each) => each.limit === limit) ?? {};
      return [name, measured ?? datasheet];
    });
    return Object.fromEntries(found.filter(([, number]) => number > 0));
  }

  function own(place) {
    const fields = JSON.parse(place.dataset.fields), says = make("output");
    const paste = make("textarea", { rows: 2, spellcheck: false });
    const inputs = fields.map(({ name, about, unit }) => {
      const input = make("input", { type: "number", step: "any", min: 0, name });
      input.addEventListener("input", () => {
        const { [name]: _, ...others } = read(KEY + "own", {});
        told(input.value > 0 ? { ...others, [name]: input.value * TERA } : others);
      });
      return [make("label", {}, `${about} `, input, ` ${unit}`), input, name];
    });
    const forget = make("button", { type: "button" }, "Forget my numbers");
    forget.addEventListener("click", () => {
      paste.value = "";
      told({}, true);
    });
    paste.addEventListener("input", () => {
      try {
        told(pasted(paste.value, fields), true);
      } catch {
        says.textContent = paste.value ? "That is not what the command prints." : "";
      }
    });
    const form = make("form", {}, make("label", {}, "What the command prints", paste), ...inputs.map(([label]) => label), forget, says);
    form.addEventListener("submit", (event) => event.preventDefault());
    place.replaceChildren(form);
    told(read(KEY + "own", {}), true);

    function told(given, filled) {
      keep("own", given);
      if (filled) for (const [, input, name] of inputs) input.value = given[name] ? Number((given[name] / TERA).toPrecision(4)) : "";
      const many = Object.keys(given).length;
      says.textContent = many ? `The keys follow ${many} of ${fields.length} numbers of yours.` : "The keys are the site's machine's.";
      follow(given);
    }
  }

  const answered = (prefix) =>
    Object.keys(localStorage).filter((key) => key.startsWith(GUESS + prefix)).map((key) => read(key)).filter((each) => each.looked && each.sure && each.points != null);

  function calibrate(place) {
    const every = answered(place.dataset.quiz), right = every.filter((each) => each.points).length;
    if (!every.length) return;
    const rows = ["1", "2", "3", "4", "5"].map((sure) => {
      const these = every.filter((each) => each.sure === sure), good = these.filter((each) => each.points).length;
      const bar = make("meter", { max: these.length || 1, value: good });
      const cells = [sure, `${these.length}`, `${good}`].map((said) => make("td", { className: "n" }, said));
      return make("tr", {}, ...cells, make("td", {}, these.length ? bar : ""));
    });
    const mean = every.reduce((sum, { sure }) => sum + (sure - 1) / 4, 0) / every.length, share = right / every.length;
    const off = Math.round(100 * (mean - share));
    const verdict = Math.abs(off) <= 10 ? "You know what you know." : off > 0 ? "You are surer than you are right." : "You know more than you think.";
    const head = ["sure", "answers", "right", "share right"].map((name) => make("th", { scope: "col" }, name));
    place.replaceChildren(
      make("p", { role: "status" }, `${right} of ${every.length} right, and ${Math.round(100 * mean)}% sure on the mean, where 1 is 0% and 5 is 100%. ${verdict}`),
      make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)),
    );
  }

  function check(place) {
    const boxes = [...place.querySelectorAll("input[type=checkbox]")], says = make("output");
    const lines = [...place.querySelectorAll("tbody tr")];
    const least = (line) => parseInt(line.cells[0].textContent, 10);
    boxes.forEach((box, at) => {
      const item = box.closest("li"), control = box.closest("label");
      Object.assign(box, { disabled: false, id: `checked-${at}`, checked: Boolean(read(KEY + "checked", {})[at]) });
      item.append(make("label", { htmlFor: box.id }, ...[...item.childNodes].filter((each) => each !== control)));
      box.addEventListener("change", () => {
        keep("checked", { ...read(KEY + "checked", {}), [at]: box.checked });
        score();
      });
    });
    place.querySelector("table")?.closest(".md-typeset__scrollwrap, table")?.before(says);
    score();

    function score() {
      const points = boxes.filter((box) => box.checked).length;
      says.textContent = `${points} of ${boxes.length} checked.`;
      const mine = lines.filter((line) => least(line) <= points).sort((a, b) => least(b) - least(a))[0];
      for (const line of lines) line.toggleAttribute("aria-current", line === mine);
    }
  }

  function reflect(place) {
    const items = [...place.querySelectorAll(":scope > ol > li")].map((item, at) => {
      const asks = text(item), area = make("textarea", { rows: 2, value: read(KEY + at, "") });
      area.setAttribute("aria-label", asks);
      area.addEventListener("input", () => keep(at, area.value));
      item.append(area);
      return [asks, area];
    });
    const save = make("button", { type: "button" }, "Save all of it as Markdown");
    save.addEventListener("click", () => {
      const file = new Blob([markdown(items)], { type: "text/markdown" });
      const link = make("a", { href: URL.createObjectURL(file), download: "reflection-1.md" });
      link.click();
      URL.revokeObjectURL(link.href);
    });
    place.append(save);
  }

  function markdown(items) {
    const quiz = all(".admonition.quiz").map((box) => {
      const said = text(box.querySelector("output"));
      return `- ${text(box.querySelector(".admonition-title"))} ${said || "Not answered."}`;
    });
    const calibration = text(document.querySelector(".calibration [role=status]"));
    const checks = all(".checklist input[type=checkbox]").map((box) => `- [${box.checked ? "x" : " "}] ${text(box.closest("li"))}`);
    const written = items.map(([asks, area]) => `### ${asks}\n\n${area.value.trim() || "(nothing yet)"}`);
    const day = new Date().toISOString().slice(0, 10);
    const parts = [`# ${text(document.querySelector("h1"))}`, day, "## Quiz", quiz.join("\n"), calibration, "## Checklist", checks.join("\n"), "## Reflections", ...written];
    return `${parts.filter(Boolean).join("\n\n")}\n`;
  }

  all(".own-numbers").forEach(own);
  const places = all(".calibration");
  addEventListener("anatomy-answer", () => places.forEach(calibrate));
  places.forEach(calibrate);
  all(".checklist").forEach(check);
  all(".reflections").forEach(reflect);
})();
