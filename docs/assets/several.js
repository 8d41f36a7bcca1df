// What a step would take on more GPUs: a reader's weights and own step, by the fit of the page's recording.
// Without this the sentence stands for the page's own model.
addEventListener("DOMContentLoaded", () => {
  // Bytes of a gradient; of a weight with all that DDP keeps for it, and that FSDP2 shares out; GPUs of one host.
  const SENT = 4, DDP = 20, SHARED = 16, LARGEST = 8;
  const seconds = (time) => {
    const [size, unit] = time >= 1 ? [1, "s"] : time >= 1e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
    return `${Number((time / size).toPrecision(3))} ${unit}`;
  };
  for (const place of document.querySelectorAll(".several-gpus[data-rate]")) {
    const given = (name) => Number(place.dataset[name]);
    const fields = [
      ["your model: million weights", { type: "number", min: 0.1, step: "any", value: given("weights") }],
      ["your step on one GPU, ms", { type: "number", min: 0.1, step: "any", value: given("aloneS") * 1e3 }],
      ["GPUs of one host, 2 to 8", { type: "number", min: 2, max: LARGEST, value: given("gpus") }],
    ].map(([text, how]) => {
      const label = document.createElement("label");
      const input = Object.assign(document.createElement("input"), how);
      label.append(text, input);
      return [label, input];
    });
    const inputs = fields.map(([, input]) => input);
    const told = place.querySelector("p");
    told.setAttribute("role", "status"); // what changes is read out
    told.before(...fields.map(([label]) => label));
    const said = (name, text) => (told.querySelector(`[data-${name}]`).textContent = text);

    // As in anatomy/chapters/distributed/scaling.py: a ring, whose start is the host's.
    function reckon() {
      if (inputs.some((input) => !input.validity.valid || !input.value)) {
        for (const each of told.querySelectorAll("b")) each.textContent = "?";
        return;
      }
      const [weights, step, gpus] = inputs.map((input) => Number(input.value));
      const alone = step / 1e3, sent = SENT * weights * 1e6;
      const allReduce = given("startS") + (sent * 2 * (gpus - 1)) / gpus / given("rate");
      said("weights", weights), said("gpus", gpus), said("all-reduce", seconds(allReduce));
      for (const [time, efficiency, share] of [["step", "efficiency", "share"], ["exposed", "least", "most"]]) {
        const whole = alone + given(share) * allReduce;
        said(time, seconds(whole)), said(efficiency, `${Math.round((100 * alone) / whole)}%`);
      }
      for (const [name, bytes] of [["ddp", DDP], ["fsdp", SHARED / gpus]])
        said(name, `${Number(((bytes * weights) / 1e3).toPrecision(3))} GB`);
    }
    for (const input of inputs) input.addEventListener("input", reckon);
  }
});
