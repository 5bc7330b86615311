// A partition opens in a drawer beside the grid. Without a script, or with a modifier key, the link
// leads to the partition's page.
import { Fragment } from "./fragment.js";
import { partitionLinks } from "./selectors.js";

let drawer = null;
let fragment = null;
let opener = null;

function build() {
  drawer = document.createElement("div");
  drawer.className = "sw-drawer";
  drawer.setAttribute("role", "dialog");
  drawer.setAttribute("aria-labelledby", "drawer-title");
  drawer.innerHTML = `<button class="btn-close" type="button" aria-label="Close"></button>
    <div class="sw-drawer-body" tabindex="0" role="region" aria-label="Partition"></div>`;
  document.body.append(drawer);
  drawer.querySelector("button").addEventListener("click", close);
  drawer.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  fragment = new Fragment(drawer.querySelector(".sw-drawer-body"), {
    titleId: "drawer-title",
    retry: () => open(fragment.address, fragment.name),
  });
}

// The cell of the partition in the drawer is marked, and gets the focus when the drawer closes.
function mark(address) {
  const path = new URL(address).pathname;
  for (const link of document.querySelectorAll(partitionLinks)) {
    if (link.pathname !== path) link.removeAttribute("aria-current");
    else {
      link.setAttribute("aria-current", "true");
      opener = link;
    }
  }
}

function close() {
  drawer.hidden = true;
  document.body.classList.remove("has-drawer");
  for (const link of document.querySelectorAll(`${partitionLinks}[aria-current]`)) link.removeAttribute("aria-current");
  opener?.focus({ preventScroll: true });
}

async function open(address, text) {
  if (!drawer) build();
  mark(address);
  const name = opener?.href === address ? opener.getAttribute("aria-label") : text;
  drawer.setAttribute("aria-busy", "true");
  if (!(await fragment.load(address, name))) return;
  drawer.removeAttribute("aria-busy");
  drawer.hidden = false;
  document.body.classList.add("has-drawer");
  fragment.element.scrollTop = 0;
  fragment.element.querySelector("#drawer-title")?.focus();
}

export function partitionDrawer() {
  // A polled grid has exchanged its cells.
  document.addEventListener("htmx:afterSwap", () => {
    if (drawer && !drawer.hidden && fragment.address) mark(fragment.address);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(`${partitionLinks}, .sw-drawer a[data-drawer]`);
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || !window.htmx) return;
    event.preventDefault();
    if (!link.matches("[data-drawer]")) opener = link;
    open(link.href, link.textContent.trim());
  });
}
