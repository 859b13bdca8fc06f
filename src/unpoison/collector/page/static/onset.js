/** The onset of an attack: in words beside the verdict, and as a mark on charts over time. */

import { byId, element, setText, show } from "./dom.js";
import { dateTime } from "./format.js";

const LABEL = "Attack onset";
/** Pixels that the label needs beside its line. */
const LABEL_ROOM = 90;
/** Seconds since 1970, or null; charts ask for it whenever they are drawn. */
let at = null;

/** Show since when a campaign has had more attackers, if its status tells. */
export function showOnset({ onset }) {
  at = onset === null ? null : Date.parse(onset) / 1000;
  show(byId("onset"), onset !== null);
  if (onset !== null)
    setText(byId("onset"), `${LABEL}: the share of attackers rose after ${dateTime(onset)}.`);
}

/** The mark in words, for the description of a chart; null if it is not among the chart's times. */
export const onsetNote = (times) =>
  inside(times[0], times.at(-1))
    ? `. ${LABEL}: ${dateTime(new Date(1000 * at).toISOString())}.`
    : null;

const inside = (first, last) => at !== null && at >= first && at <= last;

/** A plugin of uPlot: a labelled vertical line at the onset, moved whenever the chart is drawn. */
export function onsetMark() {
  const label = element("span", {}, LABEL);
  const line = element("div", { class: "onset-line", "aria-hidden": "true" }, label);
  line.hidden = true;
  const place = (chart) => {
    const { min, max } = chart.scales.x;
    show(line, inside(min, max));
    if (line.hidden) return;
    const left = chart.valToPos(at, "x");
    line.style.left = `${left}px`;
    line.classList.toggle("before", left + LABEL_ROOM > chart.over.clientWidth);
  };
  return { hooks: { init: (chart) => chart.over.append(line), draw: place } };
}
