// "/" and Ctrl+K or ⌘K lead to the search of everything.
export function watchKeys() {
  document.addEventListener("keydown", (event) => {
    const field = document.querySelector("[data-search-all]");
    if (!field) return;
    const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey;
    const isK = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (!isK && (!isSlash || isTyping)) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
  // A menu closes by Escape, and by a click elsewhere.
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.querySelector(".sw-menu[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  document.addEventListener("click", (event) => {
    const menu = document.querySelector(".sw-menu[open]");
    if (menu && !menu.contains(event.target)) menu.open = false;
  });
}
