// Light or dark: the system's choice unless the reader made one. Runs before the page is painted.
// The key is one of our own: Django's script for the admin site kept other words under "theme".
(() => {
  const key = "slicewise-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const chosen = localStorage.getItem(key);
    const isChosen = chosen === "light" || chosen === "dark";
    const theme = isChosen ? chosen : system.matches ? "dark" : "light";
    document.documentElement.setAttribute("data-bs-theme", theme);
    // The name that the style sheets of the admin site read.
    document.documentElement.setAttribute("data-theme", theme);
  };
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-switch]")) return;
    const dark = document.documentElement.getAttribute("data-bs-theme") === "dark";
    const next = dark ? "light" : "dark";
    // Choosing what the system says anyway means following the system again.
    if ((next === "dark") === system.matches) localStorage.removeItem(key);
    else localStorage.setItem(key, next);
    apply();
  });
})();
