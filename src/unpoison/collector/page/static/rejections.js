/** The table of refused requests by cause. */

import { byId, show } from "./dom.js";
import { count } from "./format.js";
import { dataTable } from "./table.js";
import { causeWord } from "./words.js";

const table = dataTable({
  id: "rejection-table",
  caption: "Refused requests by cause, largest first",
  columns: [{ title: "Cause" }, { title: "Requests", number: true }],
});

export function showRejections({ rejections }) {
  show(byId("rejections-empty"), !rejections.length);
  show(byId("rejections-table"), rejections.length > 0);
  if (!rejections.length) return;
  if (!table.node.isConnected) byId("rejections-table").append(table.node);
  const most = Math.max(...rejections.map((rejection) => rejection.count));
  table.update(
    rejections.map(({ cause, count: times }) => ({
      key: cause,
      cells: [
        { text: causeWord(cause), note: cause },
        { text: count(times), bar: times / most },
      ],
    })),
  );
}
