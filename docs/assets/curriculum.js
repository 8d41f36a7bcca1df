// A day's boxes, where scripts run: a guess is kept in this browser, shown beside what was measured,
// and scored. Without this script every question and every answer is there, folded. Nothing is sent.
(() => {
  const KEY = "anatomy-guess ", MOST = 10, PREFIX = { n: 1e-9, "µ": 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };
  const BINARY = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 };
  const kept = {
    all: () => Object.keys(localStorage).filter((key) => key.startsWith(KEY)).map((key) => key.slice(KEY.length)),
    get: (name) => JSON.parse(localStorage.getItem(KEY + name)) ?? {},
    set: (name, value) => localStorage.setItem(KEY + name, JSON.stringify(value)),
    forget: (name) => localStorage.removeItem(KEY + name),
  };
  const size = (unit) => {
    const [, prefix] = unit.match(/^([KMGT]i|[nµmkMGTP])(?:FLOP\/s|B\/s|FLOP\/B|B|s|Hz)$/) ?? [];
    return BINARY[prefix] ?? PREFIX[prefix] ?? 1;
  };
  // The number that a figure prints, in the unit asked for: 842 GB/s is 0.842 TB/s, 3% slower 1.03 ×.
  const number = (text, unit) => {
    if (/as fast$/.test(text)) return 1;
    const [, digits, printed] = text.replace(/,/g, "").match(/(\d+(?:\.\d+)?)\s?(\S*)/) ?? [];
    if (printed === "%" && unit === "×") return 1 + digits / 100;
    return (Number(digits) * size(printed ?? "")) / size(unit);
  };
  const make = (tag, props, ...inside) => {
    const element = Object.assign(document.createElement(tag), props);
    element.append(...inside);
    return element;
  };

  for (const box of document.querySelectorAll(".admonition:is(.predict, .calculate, .measure)")) {
    const asked = box.querySelector(":scope > p[id]"), fold = box.querySelector("details.answer");
    if (asked && fold) play(box, asked, fold);
  }
  for (const place of document.querySelectorAll(".week-score")) sum(place);

  function play(box, asked, fold) {
    const name = asked.id, { unit } = asked.dataset, guess = box.classList.contains("predict");
    const figures = [...fold.querySelectorAll(".measured")].map((each) => each.textContent);
    const right = unit ? figures[0] : fold.querySelector(".right")?.textContent;
    const says = make("output"), again = [...document.querySelectorAll(`a.guess[href="#${name}"]`)];
    const whereSaid = again.map((link) => link.parentElement.appendChild(make("span", { className: "said" })));
    const button = make("button", {}, guess ? "Keep my guess" : "Check");
    const form = make("form", { className: "guess" });
    let input;
    fold.before(form);
    if (unit) {
      input = make("input", { type: "number", step: "any", min: 0, required: true, name });
      form.append(make("label", {}, guess ? "Your guess " : "Your figure ", input, ` ${unit}`), button, says);
    } else {
      const list = box.querySelector(":scope > ul");
      form.setAttribute("role", "radiogroup");
      form.setAttribute("aria-labelledby", name);
      form.append(list, button, says);
      for (const line of list.children) {
        const letter = line.querySelector("strong").textContent;
        const choice = make("input", { type: "radio", name, value: letter, required: true });
        line.append(make("label", {}, choice, ...line.childNodes));
      }
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const said = new FormData(form).get(name);
      kept.set(name, { said, points: points(said) });
      tell();
    });
    fold.addEventListener("toggle", () => {
      if (!fold.open || !guess || kept.get(name).looked) return;
      kept.set(name, { ...kept.get(name), looked: true });
      tell();
    });
    tell(true);

    function points(said) {
      if (!guess || right === undefined) return null;
      if (!unit) return said === right ? MOST : 0;
      const decades = Math.abs(Math.log10(said / number(right, unit)));
      return Math.round(MOST * Math.max(0, 1 - decades));
    }

    function tell(first) {
      const { said, looked } = kept.get(name);
      for (const each of form.elements) each.disabled = guess && Boolean(looked);
      if (said === undefined) says.textContent = guess && looked ? "You looked first, so this one is not scored." : "";
      else {
        if (first && unit) input.value = said;
        else if (first) for (const each of form.elements[name]) each.checked = each.value === said;
        says.textContent = guess && !looked ? `Kept: ${spoken(said)}. Unfold the answer when you are done.` : verdict(said);
      }
      const told = said !== undefined && looked ? `: ${verdict(said)}` : said !== undefined ? `: ${spoken(said)}` : "";
      for (const each of whereSaid) each.textContent = told;
    }

    function spoken(said) {
      return unit ? `${said}${/^[×%]/.test(unit) ? "" : " "}${unit}` : said;
    }

    function verdict(said) {
      if (right === undefined) return `You said ${spoken(said)}; not measured yet.`;
      if (guess) return `You said ${spoken(said)}, measured ${right}: ${points(said)} of ${MOST} points.`;
      const [low, high] = box.classList.contains("measure")
        ? figures[0].split(" to ").map((end) => number(end, unit))
        : [0.95, 1.05].map((part) => part * number(right, unit));
      if (said >= low && said <= high) return "Right.";
      return said < low ? "Too small, or another machine: look again, then unfold." : "Too large, or another machine: look again, then unfold.";
    }
  }

  // A name begins with the number of its day: d02-wave.
  function sum(place) {
    const week = Number(place.dataset.week);
    const mine = kept.all().filter((name) => Math.ceil(name.slice(1, 3) / 7) === week);
    const scored = mine.map((name) => [Number(name.slice(1, 3)), kept.get(name).points]).filter(([, each]) => each != null);
    const total = scored.reduce((all, [, each]) => all + each, 0);
    place.textContent = scored.length
      ? `Your score: ${total} of ${MOST * scored.length} points, from ${scored.length} guess${scored.length > 1 ? "es" : ""}. `
      : "Your score: no guesses in this browser yet. ";
    for (const line of document.querySelectorAll("li[data-day]")) {
      line.querySelector(".score")?.remove();
      const own = scored.filter(([day]) => day === Number(line.dataset.day)).map(([, each]) => each);
      const told = `${own.reduce((all, each) => all + each, 0)} of ${MOST * own.length} points`;
      if (own.length) line.firstElementChild.append(make("span", { className: "tag score" }, told));
    }
    if (!mine.length) return;
    const forget = make("button", { type: "button" }, "Forget my guesses of this week");
    forget.addEventListener("click", () => {
      mine.forEach(kept.forget);
      sum(place);
    });
    place.append(forget);
  }
})();
