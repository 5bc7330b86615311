// One box that ticks all boxes of a name on the page. Without a script it is not there.
export function offerAll(root) {
  for (const label of root.querySelectorAll("[data-ticks][hidden]")) {
    label.hidden = false;
    const all = label.querySelector("input");
    all.addEventListener("change", () => {
      const boxes = all.form.querySelectorAll(`input[type=checkbox][name=${label.dataset.ticks}]`);
      for (const box of boxes) box.checked = all.checked;
    });
  }
}
