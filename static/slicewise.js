// The one entry of all pages: each part acts only where its elements are.
import { datePickers } from "./dates.js";
import { selectable } from "./grid.js";
import { keepAtEnd } from "./log.js";
import { showTimes } from "./times.js";

showTimes(document);
document.addEventListener("htmx:load", (event) => showTimes(event.target.parentElement ?? document));
for (const grid of document.querySelectorAll("[data-select]")) selectable(grid);
if (document.querySelector("[data-follow]")) keepAtEnd();
if (document.querySelector("[data-picks]") && window.flatpickr) datePickers();

// A field that says so sends its form when it changes.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});
