// A partition opens in a drawer beside the grid. Without a script, or with a modifier key, the link
// leads to the partition's page.
const inGrid = ".partition-grid a[href*='partitions/']";

let drawer = null;
let opener = null;
// The link of the partition in the drawer; a late answer about another one is out of date.
let shown = null;

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
  const body = drawer.querySelector(".sw-drawer-body");
  body.addEventListener("htmx:beforeSwap", (event) => {
    const { detail, target } = event;
    if (target === body && detail.pathInfo.requestPath !== shown.address) detail.shouldSwap = false;
  });
  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, ({ detail }) => {
      if (detail.target === body && detail.pathInfo.requestPath === shown.address) tellFailed(body);
    });
  }
}

function tellFailed(body) {
  const title = document.createElement("h2");
  title.className = "h3 mb-1 text-break";
  title.id = "drawer-title";
  title.tabIndex = -1;
  title.textContent = shown.name;
  const text = document.createElement("p");
  text.setAttribute("role", "alert");
  text.textContent = "The server did not answer.";
  const again = document.createElement("button");
  again.className = "btn";
  again.type = "button";
  again.textContent = "Try again";
  again.addEventListener("click", () => open(shown));
  body.replaceChildren(title, text, again);
}

// The cell of the partition in the drawer is marked, and gets the focus when the drawer closes.
function mark(address) {
  const path = new URL(address).pathname;
  for (const link of document.querySelectorAll(inGrid)) {
    if (link.pathname !== path) link.removeAttribute("aria-current");
    else {
      link.setAttribute("aria-current", "true");
      opener = link;
      shown.name = link.getAttribute("aria-label");
    }
  }
}

function close() {
  drawer.hidden = true;
  document.body.classList.remove("has-drawer");
  for (const link of document.querySelectorAll(`${inGrid}[aria-current]`)) link.removeAttribute("aria-current");
  opener?.focus({ preventScroll: true });
}

async function open(link) {
  if (!drawer) build();
  const body = drawer.querySelector(".sw-drawer-body");
  shown = link;
  mark(link.address);
  // Without an answer nothing of another partition stays.
  body.replaceChildren();
  drawer.setAttribute("aria-busy", "true");
  try {
    await window.htmx.ajax("GET", link.address, { target: body, swap: "innerHTML" });
  } catch {
    // Told by the event of the error.
  }
  if (shown !== link) return;
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
    open({ address: link.href, name: link.textContent.trim() });
  });
}
