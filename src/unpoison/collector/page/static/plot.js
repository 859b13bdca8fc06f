/** Charts by uPlot: sized by their host, coloured by the style sheet, with a tip at the cursor. */

import uPlot from "./vendor/uPlot/uPlot.esm.js";
import { element, setText } from "./dom.js";
import { dateTime, ticks } from "./format.js";
import { colour, onThemeChange } from "./theme.js";

const FONT = "12px system-ui, sans-serif";
const DAY = 86_400;
/** Pixels at the right end, for half of the widest label that can stand there: "12:59:59 PM". */
const END_ROOM = 38;
/** Distances of ticks in shares: whole per cents, and finer ones where there is less than three. */
const WHOLE_PERCENTS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1];
const FINER = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005];
const LEAST_FOR_WHOLE = 0.03;
const pen = document.createElement("canvas").getContext("2d");
pen.font = FONT;

export const bars = uPlot.paths.bars({ size: [1, Infinity], gap: 1 });

/** Shapes for histograms, whose data are the left edges of bins; the last edge has no bar. */
export const binBars = uPlot.paths.bars({ size: [1, Infinity], gap: 1, align: 1 });
/** Bars that stand on the values of another series. */
export const binsAbove = (base) =>
  uPlot.paths.bars({
    size: [1, Infinity],
    gap: 0,
    align: 1,
    disp: {
      y0: { values: (chart) => chart.data[base] },
      y1: { values: (chart, series) => chart.data[series] },
    },
  });
export const binSteps = uPlot.paths.stepped({ align: 1 });

/** The bin under the cursor, which is not always the one whose left edge is nearest. */
const binUnder = (chart, _series, nearest, x) => {
  const index = x < chart.data[0][nearest] ? nearest - 1 : nearest;
  return Math.max(0, Math.min(index, chart.data[0].length - 2));
};

/** A chart in `host`; `set(data)` draws it for the first time, and changes it afterwards. */
export function plot(host, { series, scales = {}, axes, bands, sync, tip, binned = false, plugins = [] }) {
  let chart = null;
  let data = null;
  const size = () => ({
    width: Math.floor(host.clientWidth),
    height: Math.floor(host.clientHeight),
  });
  const draw = () => {
    const { width, height } = size();
    // A host in a hidden section has no width yet; the observer calls again when it has.
    if (!data || width < 50) return;
    if (chart) chart.setSize({ width, height });
    else chart = new uPlot({ ...options, width, height }, data, host);
  };
  const options = {
    series: [{}, ...series],
    scales,
    axes: axes.map(styledAxis),
    bands,
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false },
      points: binned ? { show: false } : { size: 7 },
      ...(binned && { dataIdx: binUnder }),
      sync: sync && { key: sync },
    },
    padding: [8, END_ROOM, 0, 0],
    plugins: [tipPlugin(tip), ...plugins],
  };
  new ResizeObserver(draw).observe(host);
  onThemeChange(() => chart?.redraw(true, true));
  return {
    set(newData) {
      data = newData;
      if (chart) chart.setData(newData);
      else draw();
    },
  };
}

/** Lengths of dashes in device pixels, which uPlot expects. */
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

function styledAxis(axis) {
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
  size: widthOfLabels,
  ...axis,
});

/** A percentage axis of shares. */
export const percentAxis = (axis = {}) =>
  numberAxis({
    values: (_chart, splits) =>
      ticks(splits.map((split) => 100 * split)).map((text) => `${text} %`),
    incrs: (_chart, _axis, low, high) =>
      high - low < LEAST_FOR_WHOLE ? [...FINER, ...WHOLE_PERCENTS] : WHOLE_PERCENTS,
    ...axis,
  });

/** The width that an axis needs for its widest label. */
function widthOfLabels(_chart, values) {
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
  [title, ...lines].forEach((line, index) => setText(box.children[index], line));
}
