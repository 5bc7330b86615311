// The graph in the form of a backfill: a click on a downstream asset ticks or unticks its box, and the boxes mark the nodes.
import { Graph } from "./graph.js";
import { reached } from "./model.js";
import { nodeSize, svgElement } from "./picture.js";

const boxName = "downstream_assets";
const wayName = "downstream";
let shown = null;

class Chooser extends Graph {
  constructor(root) {
    super(root);
    this.form = root.closest("form");
    this.leaving = new AbortController();
    this.form.addEventListener("change", ({ target }) => {
      if ([wayName, boxName].includes(target.name)) this.showSelection();
    }, { signal: this.leaving.signal });
  }

  stop() {
    this.leaving.abort();
    this.worker.terminate();
  }

  begin() {
    const starts = JSON.parse(this.root.dataset.starts).map((name) => this.model.places.get(name));
    this.starts = starts.filter((at) => at !== undefined);
    this.assets = reached(this.starts, this.model.downstream);
    this.open = this.openAtFirst();
  }

  boxes() {
    const boxes = this.form.querySelectorAll(`[name="${boxName}"]`);
    return new Map([...boxes].map((box) => [box.value, box]));
  }

  // The names of the downstream assets that the backfill includes.
  chosenNames(boxes) {
    const way = this.form.elements[wayName].value;
    const names = [...boxes.keys()];
    if (way === "chosen") return new Set(names.filter((name) => boxes.get(name).checked));
    return new Set(way === "all" ? names : []);
  }

  select(id) {
    const node = this.view.nodes.get(id);
    if (node.isFold) return this.unfold(node.at);
    const { name } = this.model.assets[node.at];
    const boxes = this.boxes();
    const box = boxes.get(name);
    if (!box) return this.say(this.starts.includes(node.at) ? `${name} is backfilled` : `${name} cannot be included`);
    const chosen = this.chosenNames(boxes);
    for (const [other, otherBox] of boxes) otherBox.checked = chosen.has(other);
    this.form.querySelector(`[name="${wayName}"][value="chosen"]`).checked = true;
    box.checked = !box.checked;
    // The preview, the address and the picture follow the box.
    box.dispatchEvent(new Event("change", { bubbles: true }));
    this.say(`${name} ${box.checked ? "included" : "not included"}`);
  }

  enter(id) {
    this.select(id);
  }

  // The form stays, and its address is the address of the form.
  visit() {}
  unselect() {}
  write() {}

  showSelection() {
    if (!this.view) return;
    this.picture.mark(new Set(this.starts.map((at) => `a${at}`)));
    const boxes = this.boxes();
    const chosen = this.chosenNames(boxes);
    for (const [id, element] of this.picture.elements) {
      const node = this.view.nodes.get(id);
      const names = node.members.map((at) => this.model.assets[at].name);
      element.classList.toggle("chosen", names.some((name) => chosen.has(name)));
      if (!element.querySelector(".tick")) element.append(this.tick());
      if (node.isFold) continue;
      element.removeAttribute("href");
      element.setAttribute("role", boxes.has(names[0]) ? "checkbox" : "img");
      if (boxes.has(names[0])) element.setAttribute("aria-checked", chosen.has(names[0]));
    }
  }

  tick() {
    const mark = svgElement("use", { href: `${this.root.dataset.icons}#check` });
    return svgElement("svg", { x: nodeSize.width / 2 - 24, y: -9, width: 18, height: 18, class: "icon tick" }, mark);
  }
}

export function chooseIn(root) {
  if (root === shown?.root) return;
  shown?.stop();
  shown = new Chooser(root);
  shown.start().catch(() => shown.sayFailure(0));
}
