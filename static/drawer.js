// A partition opens in a drawer beside the grid. Without a script, or with a modifier key, the link
// leads to the partition's page.
const inGrid = ".partition-grid a[href*='partitions/']";

let drawer = null;
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
}

function close() {
  drawer.hidden = true;
  document.body.classList.remove("has-drawer");
  opener?.focus({ preventScroll: true });
}

async function open(address) {
  if (!drawer) build();
  const body = drawer.querySelector(".sw-drawer-body");
  drawer.setAttribute("aria-busy", "true");
  await window.htmx.ajax("GET", address, { target: body, swap: "innerHTML" });
  drawer.removeAttribute("aria-busy");
  drawer.hidden = false;
  document.body.classList.add("has-drawer");
  body.scrollTop = 0;
  body.querySelector("#drawer-title")?.focus();
}

export function partitionDrawer() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(`${inGrid}, .sw-drawer a[data-drawer]`);
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || !window.htmx) return;
    event.preventDefault();
    if (!link.matches("[data-drawer]")) opener = link;
    open(link.href);
  });
}
