// The entry of all pages: each module acts only where its elements are, and modules that few pages need are
// loaded where their elements are. Pages with a graph, and the form for backfills, load a module of their own.
import { watchConnection } from "./connection.js";
import { partitionDrawer } from "./drawer.js";
import { countOn, startCounting } from "./elapsed.js";
import { arrowKeys, showNames } from "./grid.js";
import { selectable } from "./grid_selection.js";
import { hoverHints } from "./hover.js";
import { clockFields } from "./instants.js";
import { watchKeys } from "./keys.js";
import { labelCells } from "./labels.js";
import { keepAlive } from "./live.js";
import { beginAtNewest } from "./strips.js";
import { keepTimes, showTimes, zoneSwitch } from "./times.js";

function showGrids() {
  for (const grid of document.querySelectorAll("[data-cells]")) {
    if (grid.dataset.select) selectable(grid);
    else arrowKeys(grid);
  }
}

// The graph of a form is large: its script is loaded when a person opens the graph.
async function drawChooser(graph) {
  const { chooseIn } = await import(graph.dataset.chooser);
  chooseIn(graph);
}

async function tickAll(root) {
  const { offerAll } = await import("./ticks.js");
  offerAll(root);
}

async function followLog() {
  const { keepAtEnd } = await import("./log.js");
  keepAtEnd();
}

function show(root) {
  showTimes(root);
  startCounting(root);
  showNames(root);
  if (root.querySelector("[data-ticks]")) tickAll(root);
  labelCells(root);
  showGrids();
  for (const grid of root.querySelectorAll("[data-cells]")) beginAtNewest(grid);
  for (const graph of root.querySelectorAll("[data-chooser]")) drawChooser(graph);
}

// At once after the swap, so that nobody sees UTC, or cells without marks, before: htmx settles, and
// loads, a moment later.
for (const swapped of ["htmx:afterSwap", "htmx:oobAfterSwap"]) {
  document.addEventListener(swapped, () => {
    showTimes(document);
    showGrids();
  });
}
document.addEventListener("htmx:load", (event) => show(event.target.parentElement ?? document));
show(document);
keepTimes();
countOn();
watchConnection();
watchKeys();
zoneSwitch(() => clockFields(document));
clockFields(document);
if (document.querySelector("[hx-trigger*='every ']")) keepAlive();
if (document.querySelector("[data-cells]")) {
  partitionDrawer();
  hoverHints();
}
if (document.querySelector("[data-follow]")) followLog();

// A field that says so sends its form when it changes.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});
