// The one entry of all pages: each part acts only where its elements are.
import { datePickers } from "./dates.js";
import { selectable, showNames } from "./grid.js";
import { keepAlive } from "./live.js";
import { keepAtEnd } from "./log.js";
import { offerAll } from "./ticks.js";
import { showTimes } from "./times.js";

function show(part) {
  showTimes(part);
  showNames(part);
  offerAll(part);
  if (window.flatpickr) datePickers(part);
}

document.addEventListener("htmx:load", (event) => show(event.target.parentElement ?? document));
show(document);
if (document.querySelector("[hx-trigger*='every ']")) keepAlive();
for (const grid of document.querySelectorAll("[data-select]")) selectable(grid);
if (document.querySelector("[data-follow]")) keepAtEnd();

// A field that says so sends its form when it changes.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});
