// A day's boxes, where scripts run: a guess is kept in this browser, shown beside what was measured,
// and scored. Without this script every question and every answer is there, folded. Nothing is sent.
(() => {
  const KEY = "anatomy-guess ", MOST = 10; // points
  const CLOSE = 0.05, NEAR = 0.1; // how near a calculation must come, and an answer of the quiz
  const PREFIX = { n: 1e-9, "µ": 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };
  // What a figure may be off by, and what then is easily forgotten.
  const SLIPS = {
    2: "are both directions counted, or both of multiply and add?", 4: "elements or bytes?", 8: "bits or bytes?",
    10: "count the zeros again.", 1000: "a prefix, such as µs for ns?", 1e6: "two prefixes, such as s for µs?",
  };
  const BINARY = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 };
  const kept = (name) => JSON.parse(localStorage.getItem(KEY + name)) ?? {};
  const keep = (name, value) => localStorage.setItem(KEY + name, JSON.stringify(value));
  const make = (tag, props, ...inside) => {
    const element = Object.assign(document.createElement(tag), props);
    element.append(...inside);
    return element;
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

  function play(box) {
    const asked = box.querySelector(":scope > p[id]"), fold = box.querySelector("details.answer");
    if (!asked || !fold) return;
    const name = asked.id, { unit, whole } = asked.dataset, quiz = box.classList.contains("quiz");
    const guess = quiz || box.classList.contains("predict");
    // What is right: by the reader's own numbers (reflection.js) where there are any.
    const found = unit ? [".yours:not([hidden]) b", ".measured"] : [".right"];
    const key = () => found.map((each) => fold.querySelector(each)?.textContent).find((each) => each);
    const form = make("form", { className: "guess" }), says = make("output");
    const button = make("button", {}, guess ? "Keep my guess" : "Check");
    const beside = [...document.querySelectorAll(`a.guess[href="#${name}"]`)].map((link) => {
      link.after(make("span"));
      return link.nextSibling;
    });
    fold.before(form);
    if (unit) {
      const input = make("input", { type: "number", step: "any", min: 0, required: true, name, value: kept(name).said ?? "" });
      form.append(make("label", {}, guess ? "Your guess " : "Your figure ", input, ` ${unit}`), button, says);
    } else {
      form.append(box.querySelector(":scope > ul"), button, says);
      form.setAttribute("role", "radiogroup");
      form.setAttribute("aria-labelledby", name);
      for (const line of form.firstChild.children) {
        const value = line.querySelector("strong").textContent, checked = value === kept(name).said;
        const choice = make("input", { type: "radio", name, value, checked, required: true });
        line.append(make("label", {}, choice, ...line.childNodes));
      }
    }
    if (quiz) button.before(confidence());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const given = new FormData(form), said = given.get(name), sure = given.get(`${name}-sure`);
      keep(name, { said, points: points(said), ...(quiz && { sure }) });
      tell();
    });
    fold.addEventListener("toggle", () => {
      if (!guess || !fold.open) return;
      keep(name, { ...kept(name), looked: true });
      tell();
    });
    if (quiz) addEventListener("anatomy-own", () => {
      const { said } = kept(name);
      if (said !== undefined) keep(name, { ...kept(name), points: points(said) });
      tell();
    });
    tell();

    function confidence() {
      const set = make("fieldset", { className: "sure" }, make("legend", {}, "How sure? 1 is a guess, 5 is certain"));
      for (const value of ["1", "2", "3", "4", "5"]) {
        const checked = value === kept(name).sure;
        set.append(make("label", {}, make("input", { type: "radio", name: `${name}-sure`, value, checked, required: true }), value));
      }
      return set;
    }

    function tell() {
      const { said, looked } = kept(name);
      for (const each of form.elements) each.disabled = guess && Boolean(looked);
      if (said === undefined) says.textContent = looked ? "You looked first, so this one is not scored." : "";
      else says.textContent = guess && !looked ? `Kept: ${spoken(said)}. Unfold the answer when you are done.` : verdict(said);
      if (quiz) dispatchEvent(new Event("anatomy-answer"));
      for (const each of beside) each.textContent = said === undefined ? "" : `: ${looked ? verdict(said) : spoken(said)}`;
    }

    function spoken(said) {
      return unit ? `${said}${/^[×%]/.test(unit) ? "" : " "}${unit}` : said;
    }

    // Of a ratio the side of 1 is the question: no points for "no slower" where it was.
    function otherSide(said, measured) {
      return unit === "×" && Math.abs(measured - 1) > CLOSE && (said - 1) * (measured - 1) <= 0;
    }

    function points(said) {
      const right = key();
      if (!guess || right === undefined) return null;
      if (!unit) return said === right ? MOST : 0;
      const measured = number(right, unit);
      if (quiz) return Math.abs(said / measured - 1) <= NEAR ? MOST : 0;
      if (otherSide(said, measured)) return 0;
      return Math.round(MOST * Math.max(0, 1 - Math.abs(Math.log10(said / measured))));
    }

    function verdict(said) {
      const right = key();
      const open = fold.querySelector(".open") && "not settled by this machine, so without points";
      if (right === undefined) return `You said ${spoken(said)}; ${open || "not measured yet"}.`;
      if (quiz) return `You said ${spoken(said)}, sure ${kept(name).sure} of 5: ${points(said) ? "right." : `wrong, it is ${right}.`}`;
      const why = unit && otherSide(said, number(right, unit)) ? ", for the wrong side of 1" : "";
      if (guess) return `You said ${spoken(said)}, measured ${right}: ${points(said)} of ${MOST} points${why}.`;
      const ends = right.includes(" to ") ? right.split(" to ") : [right, right];
      const wide = ends[0] !== ends[1] || whole ? 1e-9 : CLOSE; // a range is wide enough, and has its ends
      const [low, high] = ends.map((end) => number(end, unit));
      if (said >= low * (1 - wide) && said <= high * (1 + wide)) return "Right.";
      const too = `Too ${said < low ? "small" : "large"}`;
      if (box.classList.contains("measure")) return `${too} for this page's machine. Yours may be right: unfold what to expect.`;
      if (whole && Math.ceil(said) === low) return `${too}: ${whole}.`;
      const off = Math.max(said / low, low / said);
      const slip = Object.keys(SLIPS).find((factor) => Math.abs(off / factor - 1) < CLOSE);
      return `${too}${slip ? ` by a factor of ${slip}: ${SLIPS[slip]}` : ": look again, then unfold."}`;
    }
  }

  // A name begins with the number of its day: d02-wave.
  function sum(place) {
    const week = Number(place.dataset.week), day = (name) => Number(name.slice(1, 3));
    const names = Object.keys(localStorage).filter((key) => key.startsWith(KEY)).map((key) => key.slice(KEY.length));
    const mine = names.filter((name) => Math.ceil(day(name) / 7) === week);
    const score = (these) => {
      const points = these.map((name) => kept(name).points).filter((each) => each != null);
      return [points.reduce((all, each) => all + each, 0), points.length];
    };
    const [total, many] = score(mine);
    place.textContent = many
      ? `Your score: ${total} of ${MOST * many} points, from ${many} guess${many > 1 ? "es" : ""}. `
      : "Your score: no guesses in this browser yet. ";
    for (const line of document.querySelectorAll("li[data-day]")) {
      if (Math.ceil(line.dataset.day / 7) !== week) continue;
      line.querySelector(".score")?.remove();
      const [own, times] = score(mine.filter((name) => day(name) === Number(line.dataset.day)));
      if (times) line.firstChild.append(make("span", { className: "tag score" }, `${own} of ${MOST * times} points`));
    }
    if (!mine.length) return;
    const forget = make("button", { type: "button" }, "Forget my guesses of this week");
    forget.addEventListener("click", () => {
      for (const name of mine) localStorage.removeItem(KEY + name);
      sum(place);
    });
    place.append(forget);
  }

  document.querySelectorAll(".admonition:is(.predict, .quiz, .calculate, .measure)").forEach(play);
  document.querySelectorAll(".week-score").forEach(sum);
})();
