"use strict";
// Every header of a .sortable table becomes a button. Without scripts the page is whole, in its first order.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const first = head.dataset.first || "ascending";
      const way = before === null ? first : before === "ascending" ? "descending" : "ascending";
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", way);
      const sign = way === "ascending" ? 1 : -1;
      const keyed = [...body.rows].map((row) => [row.cells[column].dataset.value ?? "", row]);
      keyed.sort(([a], [b]) => {
        if (a === "" || b === "") return (a === "") - (b === "");  // what has no value stays last either way
        return sign * (head.dataset.sort === "number" ? Number(a) - Number(b) : a < b ? -1 : a > b ? 1 : 0);
      });
      body.append(...keyed.map(([, row]) => row));
    });
  });
}
