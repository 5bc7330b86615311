// The one entry of all pages: each part acts only where its elements are.
import { datePickers } from "./dates.js";
import { selectable, showNames } from "./grid.js";
import { keepAlive } from "./live.js";
import { keepAtEnd } from "./log.js";
import { showTimes } from "./times.js";

showTimes(document);
showNames(document);
document.addEventListener("htmx:load", (event) => {
  const part = event.target.parentElement ?? document;
  showTimes(part);
  showNames(part);
});
if (document.querySelector("[hx-trigger*='every ']")) keepAlive();
for (const grid of document.querySelectorAll("[data-select]")) selectable(grid);
if (document.querySelector("[data-follow]")) keepAtEnd();
if (document.querySelector("[data-picks]") && window.flatpickr) datePickers();

// A field that says so sends its form when it changes.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});
