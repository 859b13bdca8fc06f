/** The table of frequencies: the share of honest users in each category. */

import { byId, show } from "./dom.js";
import { percent } from "./format.js";
import { dataTable, scrolling } from "./table.js";
import { between } from "./value-format.js";

const table = dataTable({
  id: "frequency-table",
  caption: "Share of honest users in each category",
  stacked: true,
  columns: [
    { title: "Category" },
    { title: "Honest users", number: true },
    { title: "95 % interval", number: true },
    { title: "All reports say", number: true },
  ],
});

export function showFrequencies({ frequencies, fit, byzantine }) {
  show(byId("frequencies"), Boolean(frequencies));
  if (!frequencies) return;
  const host = byId("frequencies-table");
  if (!table.node.isConnected) host.append(scrolling("Frequencies", table.node));
  const most = Math.max(...Object.values(frequencies), 1e-9);
  const poisoned = new Set(byzantine.categories ?? []);
  table.update(
    Object.entries(frequencies).map(([name, share]) => ({
      key: name,
      cells: [
        { text: name, note: poisoned.has(name) ? "pushed by attackers" : "" },
        { text: percent(share), bar: share / most },
        interval(fit?.frequency_intervals?.[name]),
        percent(fit?.unfiltered_frequencies?.[name]),
      ],
    })),
  );
}

const interval = (ends) => (ends ? between(ends, percent) : "–");
