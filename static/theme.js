// Light or dark: the system's choice unless the reader made one. Runs before the page is painted.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const chosen = localStorage.getItem("theme");
    const theme = chosen ?? (system.matches ? "dark" : "light");
    document.documentElement.setAttribute("data-bs-theme", theme);
  };
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-switch]")) return;
    const dark = document.documentElement.getAttribute("data-bs-theme") === "dark";
    const next = dark ? "light" : "dark";
    // Choosing what the system says anyway means following the system again.
    if ((next === "dark") === system.matches) localStorage.removeItem("theme");
    else localStorage.setItem("theme", next);
    apply();
  });
})();
