// Helps while a table is put together; the pages work without it, and the server decides.
"use strict";

const written = new Intl.NumberFormat("en");

function chosenOptions(form) {
  return [...form.querySelectorAll("select")]
    .map((select) => select.selectedOptions[0])
    .filter((option) => option.value !== "");
}

// A variable moves to where it was chosen last.
function takeFromElsewhere(form, changed) {
  const variable = changed.selectedOptions[0].dataset.variable;
  for (const select of form.querySelectorAll("select")) {
    if (select !== changed && variable && select.selectedOptions[0].dataset.variable === variable) {
      select.value = "";
    }
  }
}

function tellSize(form) {
  const chosen = chosenOptions(form);
  const limit = Number(form.dataset.maxCells);
  const cells = chosen.reduce((product, option) => product * Number(option.dataset.cells), 1);
  const hint = form.querySelector(".hint");
  hint.classList.toggle("over", cells > limit);
  if (chosen.length === 0) {
    hint.textContent = "Choose at least one variable.";
  } else if (cells > limit) {
    hint.textContent = `${written.format(cells)} cells; at most ${written.format(limit)} are allowed. Choose a coarser level.`;
  } else {
    hint.textContent = `${written.format(cells)} cells, subtotals and totals included.`;
  }
}

for (const form of document.querySelectorAll("form.builder")) {
  form.addEventListener("change", (event) => {
    takeFromElsewhere(form, event.target);
    tellSize(form);
  });
  tellSize(form);
}
