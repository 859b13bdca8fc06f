/** uPlot as this page uses it: sized by its host, coloured by the style sheet, with a tip. */

import uPlot from "./vendor/uPlot/uPlot.esm.js";
import { element, setText } from "./dom.js";
import { dateTime, ticks } from "./format.js";
import { colour, onThemeChange } from "./theme.js";

const FONT = "12px system-ui, sans-serif";
const DAY = 86_400;
const pen = document.createElement("canvas").getContext("2d");
pen.font = FONT;

export const bars = uPlot.paths.bars({ size: [1, Infinity], gap: 1 });

/** The same for data that begin at the left edge of their bin; the last edge has no bar. */
export const binBars = uPlot.paths.bars({ size: [1, Infinity], gap: 1, align: 1 });
export const binArea = uPlot.paths.bars({ size: [1, Infinity], gap: 0, align: 1 });
export const binSteps = uPlot.paths.stepped({ align: 1 });

/** The bin under the cursor, which is not always the one whose left edge is nearest. */
const binUnder = (chart, _series, nearest, x) => {
  const place = x < chart.data[0][nearest] ? nearest - 1 : nearest;
  return Math.max(0, Math.min(place, chart.data[0].length - 2));
};

/** A chart in `host`; `set(data)` draws it for the first time, and changes it afterwards. */
export function plot(host, { series, scales = {}, axes, bands, sync, tip, binned = false }) {
  let chart = null;
  let data = null;
  const size = () => ({
    width: Math.floor(host.clientWidth),
    height: Math.floor(host.clientHeight),
  });
  const draw = () => {
    const { width, height } = size();
    if (!data || width < 50) return;
    if (chart) chart.setSize({ width, height });
    else chart = new uPlot({ ...options, width, height }, data, host);
  };
  const options = {
    series: [{}, ...series],
    scales,
    axes: axes.map(dressed),
    bands,
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false },
      points: binned ? { show: false } : { size: 7 },
      ...(binned && { dataIdx: binUnder }),
      sync: sync && { key: sync },
    },
    padding: [8, 12, 0, 0],
    plugins: [tipPlugin(tip)],
  };
  new ResizeObserver(draw).observe(host);
  onThemeChange(() => chart?.redraw(true, true));
  return {
    set(given) {
      data = given;
      if (chart) chart.setData(given);
      else draw();
    },
  };
}

/** Dashes of the same length on every screen. */
export const dashes = (...lengths) => lengths.map((length) => length * (devicePixelRatio || 1));

/** Stroke and fill that follow the theme. */
export const ink = (name) => () => colour(name);

/** Counts or shares of honest users, as bars. */
export const honestBars = () => ({
  stroke: ink("honest"),
  fill: ink("honest-soft"),
  width: 1,
  paths: bars,
  points: { show: false },
});

function dressed(axis) {
  return {
    font: FONT,
    labelFont: FONT,
    labelSize: 18,
    stroke: ink("muted"),
    grid: { stroke: ink("grid"), width: 1 },
    ticks: { stroke: ink("grid"), width: 1, size: 4 },
    ...axis,
  };
}

export const numberAxis = (axis = {}) => ({
  values: (_chart, splits) => ticks(splits),
  size: widest,
  ...axis,
});

/** A percentage axis of shares. */
export const percentAxis = (axis = {}) =>
  numberAxis({
    values: (_chart, splits) =>
      ticks(splits.map((split) => 100 * split)).map((text) => `${text} %`),
    ...axis,
  });

function widest(_chart, values) {
  return Math.ceil(Math.max(0, ...(values ?? []).map((text) => pen.measureText(text).width))) + 14;
}

const hour = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const second = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

export const timeAxis = () => ({
  space: 76,
  size: 32,
  values: (_chart, splits, _axis, _space, step) => splits.map((at) => timeTick(at, step)),
});

function timeTick(at, step) {
  const date = new Date(1000 * at);
  const midnight = date.getHours() + date.getMinutes() + date.getSeconds() === 0;
  if (step >= DAY || midnight) return day.format(date);
  return (step < 60 ? second : hour).format(date);
}

export const timeTitle = (at) => dateTime(new Date(1000 * at).toISOString());

/** A small box beside the cursor; `tip(index)` gives its title and lines. */
function tipPlugin(tip) {
  const box = element("div", { class: "tip", "aria-hidden": "true" });
  box.hidden = true;
  const move = (chart) => {
    const { idxs, left } = chart.cursor;
    const idx = idxs?.[1];
    box.hidden = idx === null || idx === undefined || left < 0;
    if (box.hidden) return;
    write(box, tip(idx));
    const right = left > chart.over.clientWidth / 2;
    box.style.left = right ? "auto" : `${left + 12}px`;
    box.style.right = right ? `${chart.over.clientWidth - left + 12}px` : "auto";
  };
  return { hooks: { init: (chart) => chart.over.append(box), setCursor: move } };
}

function write(box, [title, ...lines]) {
  while (box.children.length > lines.length + 1) box.lastChild.remove();
  while (box.children.length < lines.length + 1) box.append(element("div"));
  [title, ...lines].forEach((line, place) => setText(box.children[place], line));
}
