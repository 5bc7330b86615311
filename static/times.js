// Shows instants in the reader's zone, with the zone named; UTC stays on hover.
const format = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric",
  hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});

export function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-shown])")) {
    time.title = time.textContent;
    time.textContent = format.format(new Date(time.dateTime));
    time.dataset.shown = "";
  }
}
