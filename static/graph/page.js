// The graph of a page: there from the beginning.
import { Graph } from "./graph.js";

for (const root of document.querySelectorAll("[data-graph]")) {
  const graph = new Graph(root);
  graph.start().catch(() => graph.sayFailure(0));
}
