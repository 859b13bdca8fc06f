/** Enrolments and reports over time. */

import { byId, show } from "./dom.js";
import { chartFigure, legend } from "./figure.js";
import { count, dateTime, plural } from "./format.js";
import { dashes, honestBars, ink, numberAxis, plot, timeAxis, timeTitle } from "./plot.js";

const MINUTE = 60;
/** Lengths of a bin in minutes: each divides a longer one that readers expect. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440, 2880, 7200, 14400];
/** More bars than this would be thinner than a few pixels. */
const MOST_BINS = 120;
/** With fewer bars a new campaign would show one that fills the whole chart. */
const LEAST_BINS = 15;

let chart = null;
let figure = null;
let data = [[], [], []];

export function showActivity({ activity }) {
  show(byId("activity-empty"), !activity.length);
  show(byId("activity-chart"), Boolean(activity.length));
  if (!activity.length) return;
  if (!figure) start();
  const minutes = draw(activity);
  const last = activity.at(-1);
  figure.describe(
    `Users in every ${spanWords(minutes)}`,
    `Latest: ${plural(last.submissions, "report")} at ${dateTime(last.at)}.`,
  );
}

function spanWords(minutes) {
  if (minutes === 1) return "minute";
  if (minutes < 60) return `${count(minutes)} minutes`;
  return minutes === 60 ? "hour" : `${count(minutes / 60)} hours`;
}

function draw(activity) {
  const starts = activity.map((minute) => Date.parse(minute.at) / 1000);
  const span = (starts.at(-1) - starts[0]) / MINUTE + 1;
  const minutes = STEPS.find((step) => span / step <= MOST_BINS) ?? STEPS.at(-1);
  data = binned(activity, starts, minutes * MINUTE);
  chart.set(data);
  figure.setRows(rows);
  return minutes;
}

/** Counts in bins of equal length; minutes without activity are not in the status. */
function binned(activity, starts, step) {
  const last = Math.floor(starts.at(-1) / step);
  const first = Math.min(Math.floor(starts[0] / step), last - LEAST_BINS + 1);
  const length = last - first + 1;
  const times = Array.from({ length }, (_, index) => (first + index) * step);
  const enrolled = new Array(length).fill(0);
  const reported = new Array(length).fill(0);
  activity.forEach((minute, index) => {
    const bin = Math.floor(starts[index] / step) - first;
    enrolled[bin] += minute.enrolled;
    reported[bin] += minute.submissions;
  });
  return [times, reported, enrolled];
}

function start() {
  figure = chartFigure({
    columns: [
      { title: "From" },
      { title: "Enrolled", number: true },
      { title: "Reported", number: true },
    ],
  });
  figure.host.before(
    legend([
      ["honest-block", "Users who reported"],
      ["dashed", "Users who enrolled"],
    ]),
  );
  byId("activity-chart").append(figure.node);
  chart = plot(figure.host, {
    series: [
      honestBars(),
      { stroke: ink("ink"), width: 1.5, dash: dashes(5, 4), points: { show: false } },
    ],
    scales: {
      x: { range: padded },
      y: { range: (_chart, _low, high) => [0, Math.max(1, 1.08 * high)] },
    },
    axes: [timeAxis(), numberAxis({ incrs: wholeSteps() })],
    tip: (index) => [
      timeTitle(data[0][index]),
      `reported ${count(data[1][index])}`,
      `enrolled ${count(data[2][index])}`,
    ],
  });
}

/** The range of the time axis, with room for half a bar on both sides. */
function padded() {
  const [times] = data;
  const half = (times[1] - times[0]) / 2;
  return [times[0] - half, times.at(-1) + half];
}

function rows() {
  return data[0]
    .map((at, index) => ({
      key: at,
      cells: [timeTitle(at), count(data[2][index]), count(data[1][index])],
    }))
    .reverse();
}

const wholeSteps = () =>
  Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
