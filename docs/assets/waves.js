// Choose the number of blocks of a launch, and see how they fill the GPU's places, wave by wave.
// Without this the picture shows one block more than there are places.
addEventListener("DOMContentLoaded", () => {
  for (const figure of document.querySelectorAll(".waves[data-at-once]")) {
    const [places, fixed, wave] = ["atOnce", "fixedS", "waveS"].map((name) => Number(figure.dataset[name]));
    const pictures = [...figure.querySelectorAll("svg")].map((svg) => [...svg.querySelectorAll("rect")]);
    const said = (name, text) => (figure.querySelector(`[data-${name}]`).textContent = text);
    const label = document.createElement("label");
    const slider = Object.assign(document.createElement("input"), { type: "range", min: 1, max: 4 * places, value: places + 1 });
    label.append("Blocks in the launch", slider);
    figure.prepend(label);
    figure.querySelector("p").setAttribute("role", "status"); // what changes is read out
    slider.addEventListener("input", () => {
      const blocks = Number(slider.value), waves = Math.ceil(blocks / places), last = blocks - (waves - 1) * places;
      for (const squares of pictures)
        squares.forEach((square, at) => square.setAttribute("fill", `var(--chart-${at < last ? "1" : "tone"})`));
      said("blocks", blocks), said("waves", waves), said("last", last);
      said("used", `${Math.round((100 * blocks) / (waves * places))}%`);
      said("time", `${((fixed + waves * wave) * 1e6).toPrecision(3)} µs`);
      const picture = `${places} places, of which wave ${waves} of ${blocks} blocks fills ${last}.`;
      figure.querySelector("[role=img]").setAttribute("aria-label", picture);
    });
  }
});
