// Numbers of partitions by state: asked for again and again, in words, and in sums for folds.
const secondsFew = 10;
const secondsMany = 30;
const many = 500;
// Pages that ask again share the server's counts of some seconds. A page that asks for the first time, or that a person
// comes back to, gets new ones: the person may have changed something.
const shared = { "Cache-Control": "max-age=5" };
export const stateSeparator = " · ";

// Whether an answer says that the reader is not signed in, or may not read any more.
export function isRefused(status) {
  return status === 401 || status === 403;
}

export class States {
  // Looks are the entries of the legend, the most urgent state first.
  constructor(address, legend, { changed, failed }) {
    this.address = address;
    this.legend = legend;
    this.looks = [...legend.querySelectorAll("[data-state]")].map((entry) => ({
      name: entry.dataset.state, label: entry.dataset.label, icon: entry.dataset.icon, tone: entry.dataset.tone,
    }));
    this.changed = changed;
    this.failed = failed;
    this.counts = null;
    this.notCounted = [];
    this.etag = "";
    this.isRefused = false;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.isDue && !this.isRefused) this.ask({});
    });
  }

  async ask(headers = this.counts ? shared : {}) {
    clearTimeout(this.timer);
    // The graph of a form disappears with the asset.
    if (!this.legend.isConnected) return;
    this.isDue = document.hidden;
    // Nobody looks at a hidden tab.
    if (!document.hidden) await this.read(headers);
    // Without a session each further answer would be the same.
    if (this.isRefused) return;
    const count = this.counts ? Object.keys(this.counts).length : 0;
    const seconds = count > many ? secondsMany : secondsFew;
    this.timer = setTimeout(() => this.ask(), 1000 * seconds);
  }

  async read(age) {
    try {
      const headers = this.etag ? { ...age, "If-None-Match": this.etag } : age;
      const answer = await fetch(this.address, { headers, cache: "no-store" });
      if (answer.status === 304) return this.failed(null);
      this.isRefused = isRefused(answer.status);
      if (!answer.ok) return this.failed(answer.status);
      const body = await answer.json();
      this.etag = answer.headers.get("ETag") ?? "";
      this.counts = body.assets;
      this.notCounted = body.not_counted;
      this.failed(null);
      this.changed();
    } catch {
      this.failed(0);
    }
  }

  sum(names) {
    const total = {};
    for (const name of names) {
      for (const [state, number] of Object.entries(this.counts?.[name] ?? {})) {
        total[state] = (total[state] ?? 0) + number;
      }
    }
    return total;
  }

  // The names of the states in which the picture shows some assets; none before the numbers are there.
  named(names) {
    if (!this.counts) return [];
    const total = this.sum(names);
    const urgent = this.looks.filter((look) => total[look.name] && look.name !== "complete");
    return (urgent.length ? urgent : [this.summary(names).look]).map((look) => look.name);
  }

  // The look of the most urgent state, and all states in words.
  summary(names) {
    if (!this.counts) return { look: null, text: "" };
    const total = this.sum(names);
    const urgent = this.looks.filter((look) => total[look.name] && look.name !== "complete");
    const phrases = urgent.map((look) => `${total[look.name].toLocaleString("en")} ${look.label.toLowerCase()}`);
    const named = (name) => this.looks.find((look) => look.name === name);
    if (urgent.length) return { look: urgent[0], text: phrases.join(stateSeparator) };
    const materializedCount = total.materialized ?? 0;
    if (!materializedCount) return { look: named("not-yet-due"), text: "Nothing due yet" };
    return { look: named("complete"), text: `Complete · ${materializedCount.toLocaleString("en")}` };
  }
}
