// The picture of the sectors that a warp touches, for a stride and an offset that the reader chooses.
// Without this script the patterns above it stand alone.
addEventListener("DOMContentLoaded", () => {
  const SHOWN = 132, SECTOR = 32, WARP = 32, ITEM = 4;

  // Sector -> bytes of it that the 32 threads ask for, as in anatomy/chapters/coalescing/sectors.py.
  function touched(stride, offset) {
    const found = new Map();
    for (let thread = 0; thread < WARP; thread++) {
      const first = offset + ITEM * stride * thread;
      for (let byte = first; byte < first + ITEM; byte++) {
        const sector = Math.floor(byte / SECTOR);
        found.set(sector, (found.get(sector) ?? 0) + 1);
      }
    }
    return found;
  }

  for (const place of document.querySelectorAll("div.sectors")) {
    const measured = JSON.parse(place.dataset.measured);
    place.innerHTML = `
      <label>stride <input type="range" min="1" max="32" value="1"> <output></output></label>
      <label>offset <input type="range" min="0" max="128" step="4" value="0"> <output></output></label>
      <svg viewBox="0 0 ${SHOWN} 5" preserveAspectRatio="none" aria-hidden="true"></svg>
      <p role="status"></p>`;
    const [stride, offset] = place.querySelectorAll("input");
    const [ofStride, ofOffset] = place.querySelectorAll("output");

    function draw() {
      const [s, o] = [Number(stride.value), Number(offset.value)];
      const found = touched(s, o);
      const used = (WARP * ITEM) / (SECTOR * found.size);
      let boxes = "";
      for (let sector = 0; sector < SHOWN; sector++) {
        const wide = sector % 4 === 3 ? 0.85 : 0.96;
        const kind = found.has(sector) ? "moved" : "idle";
        boxes += `<rect class="${kind}" x="${sector}" y="0" width="${wide}" height="5"/>`;
      }
      for (let thread = 0; thread < WARP; thread++) {
        const begins = (o + ITEM * s * thread) / SECTOR;
        boxes += `<rect class="used" x="${begins}" y="0" width="${ITEM / SECTOR}" height="5"/>`;
      }
      place.querySelector("svg").innerHTML = boxes;
      place.dataset.waste = used < 1;
      ofStride.value = s === 1 ? "1 element" : `${s} elements`;
      ofOffset.value = `${o} bytes`;
      const rate = measured[`${s},${o}`];
      place.querySelector("p").textContent =
        `${found.size} sectors touched, ${(100 * used).toPrecision(3)}% of their bytes used. ` +
        (rate ? `Measured from HBM: ${rate}.` : "Not measured: the experiments move one slider at a time.");
    }
    for (const each of [stride, offset]) each.addEventListener("input", draw);
    draw();
  }
});
