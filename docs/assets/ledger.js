// Filters and sorting for the ledger. Without this script the table is whole, in the ledger's order.
(() => {
  const table = document.querySelector("table.claims-ledger");
  if (!table) return;
  const rows = [...table.querySelectorAll("tbody tr[id]")]; // of both groups
  const by = ["verdict", "topic", "source", "machine"];

  const form = document.createElement("form");
  form.className = "ledger-filter";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Filter the ledger");
  const field = (name, control) => {
    const label = document.createElement("label");
    control.name = name;
    label.append(name, control);
    form.append(label);
    control.addEventListener("input", filter);
    return control;
  };
  const selects = by.map((name) => {
    const select = document.createElement("select");
    const values = [...new Set(rows.map((row) => row.dataset[name]))].sort();
    for (const value of ["", ...values]) select.append(new Option(value || "all", value));
    return field(name, select);
  });
  const words = field("words", document.createElement("input"));
  words.type = "search";
  const count = document.createElement("output");
  form.append(count);
  form.addEventListener("submit", (event) => event.preventDefault());

  function filter() {
    const wanted = words.value.trim().toLowerCase();
    let left = 0;
    for (const row of rows) {
      const fits =
        selects.every((select) => !select.value || row.dataset[select.name] === select.value) &&
        row.textContent.toLowerCase().includes(wanted);
      row.hidden = !fits;
      left += fits;
    }
    // Of one machine alone, its column says nothing.
    table.classList.toggle("of-one", form.elements.machine.value !== "");
    count.textContent = `${left} of ${rows.length}`;
  }

  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(column, down ? -1 : 1);
    });
  });

  function sort(column, sign) {
    const key = (row) => {
      const cell = row.cells[column];
      if (cell.dataset.key !== undefined) return Number(cell.dataset.key);
      return cell.classList.contains("n") ? null : cell.textContent;
    };
    const keyed = rows.map((row) => [key(row), row]);
    keyed.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // what is missing is last
      return sign * (typeof a === "number" && typeof b === "number" ? a - b : `${a}`.localeCompare(`${b}`));
    });
    for (const [, row] of keyed) row.parentElement.append(row); // each within its group
  }

  // The header's machine alone, unless the address asks for a row of another one.
  const aim = () => {
    const aimed = rows.find((row) => row.hidden && row.id === decodeURIComponent(location.hash.slice(1)));
    if (!aimed) return;
    form.elements.machine.value = "";
    filter();
    aimed.scrollIntoView();
  };
  table.parentElement.before(form);
  form.elements.machine.value = table.tBodies[0].dataset.here;
  filter();
  aim();
  addEventListener("hashchange", aim);
})();
