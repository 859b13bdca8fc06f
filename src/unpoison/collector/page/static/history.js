/** Charts of the estimate and the share of attackers over time. */

import { byId, setText, show } from "./dom.js";
import { chartFigure, legend } from "./figure.js";
import { count, dateTime, percent, plural } from "./format.js";
import { onsetMark, onsetNote } from "./onset.js";
import { dashes, ink, numberAxis, percentAxis, plot, timeAxis, timeTitle } from "./plot.js";
import { between, valueFormat } from "./value-format.js";

/** Up to this many estimates each is marked by a point; more would merge into a band. */
const MOST_POINTS = 60;
/** Categories with a line of their own: more could not be told apart. */
const MOST_LINES = 5;
/** Dashes of the lines, so that they can be told apart without colours. */
const DASHES = [[], [8, 4], [2, 3], [8, 3, 2, 3], [14, 4]];
/** Seconds around a single estimate: by itself it would be drawn on an axis of years. */
const ALONE = 600;
let entries = [];
let plan = null;
let mean = null;
let attackers = null;
let shares = null;
/** The categories whose shares are drawn. */
let names = [];

/** Show the past estimates of one method. */
export function showHistory(status, method) {
  ({ plan } = status);
  const seconds = Number(byId("history-range").value) || Infinity;
  const since = Date.parse(status.estimates.at(-1)?.at) - 1000 * seconds;
  entries = status.estimates.filter(
    (entry) => entry.method === method && Date.parse(entry.at) >= since,
  );
  show(byId("history"), status.estimates.length > 0);
  show(byId("history-empty"), !entries.length);
  show(byId("history-charts"), entries.length > 0);
  setText(byId("history-empty"), "Nothing was recorded for this method yet.");
  if (!entries.length) return;
  if (plan.categories) showShares();
  else showMean();
  showAttackers();
}

const times = () => entries.map((entry) => Date.parse(entry.at) / 1000);
const value = (entry) => valueFormat(plan, entry.interval);
const points = () => ({ show: () => entries.length <= MOST_POINTS, size: 5 });

function showMean() {
  if (!mean) startMean();
  const ends = [1, 0].map((end) => entries.map((entry) => entry.interval?.[end] ?? null));
  mean.chart.set([times(), ...ends, entries.map((entry) => entry.mean)]);
  const last = entries.at(-1);
  const words = last.interval ? `, 95 % interval ${between(last.interval, value(last))}` : "";
  mean.figure.describe(
    "Mean, with its 95 % interval",
    `Latest: ${value(last)(last.mean)}${words}, from ${plural(last.users, "user")}.`,
  );
  mean.figure.setRows(() => rows((entry) => [meanWords(entry), intervalWords(entry)]));
}

const meanWords = (entry) => (entry.mean === null ? "–" : value(entry)(entry.mean));
const intervalWords = (entry) => (entry.interval ? between(entry.interval, value(entry)) : "–");

function showAttackers() {
  if (!attackers) startAttackers();
  attackers.chart.set([times(), entries.map((entry) => entry.byzantine_fraction)]);
  const last = entries.at(-1);
  attackers.figure.describe(
    "Share of attackers",
    `Latest: ${percent(last.byzantine_fraction)}${onsetNote(times()) ?? ` at ${dateTime(last.at)}.`}`,
  );
  attackers.figure.setRows(() => rows((entry) => [percent(entry.byzantine_fraction)]));
}

function rows(cells) {
  return entries
    .map((entry) => ({
      key: `${entry.at} ${entry.users}`,
      cells: [dateTime(entry.at), count(entry.users), ...cells(entry)],
    }))
    .reverse();
}

/** The largest frequencies of the last estimate over time; estimates before have none. */
function showShares() {
  const last = entries.findLast((entry) => entry.frequencies)?.frequencies;
  if (!last) return;
  if (!shares) startShares(last);
  shares.chart.set([
    times(),
    ...names.map((name) => entries.map((entry) => entry.frequencies?.[name] ?? null)),
  ]);
  shares.figure.describe(
    names.length < Object.keys(last).length
      ? `Frequencies of the ${count(names.length)} largest categories`
      : "Frequencies of the categories",
    `Latest: ${names.map((name) => `${name} ${percent(last[name])}`).join(", ")}.`,
  );
  shares.figure.setRows(() =>
    rows((entry) => names.map((name) => percent(entry.frequencies?.[name]))),
  );
}

/** Start the chart of frequencies: its lines are the categories that are largest now. */
function startShares(last) {
  names = Object.keys(last)
    .sort((a, b) => last[b] - last[a])
    .slice(0, MOST_LINES);
  shares = start(["Users", ...names], {
    series: names.map((_, line) => ({
      stroke: ink(line ? "ink" : "honest"),
      width: line ? 1.5 : 2,
      dash: dashes(...DASHES[line]),
      points: points(),
    })),
    scales: { x: { range: timeRange }, y: { range: (_chart, _low, high) => [0, 1.1 * high] } },
    axes: [timeAxis(), percentAxis()],
    tip: (index) => [
      timeTitle(times()[index]),
      ...names.map((name) => `${name} ${percent(entries[index].frequencies?.[name])}`),
    ],
  });
  shares.figure.host.before(legend(names.map((name, line) => [`line-${line}`, name])));
}

/** The range of the time axis: all estimates, with some room around a single one. */
function timeRange() {
  const [first, last] = [times()[0], times().at(-1)];
  return first < last ? [first, last] : [first - ALONE, last + ALONE];
}

const start = (titles, options) => {
  const columns = [{ title: "At" }, ...titles.map((title) => ({ title, number: true }))];
  const figure = chartFigure({ columns });
  byId("history-charts").append(figure.node);
  return { figure, chart: plot(figure.host, { sync: "history", plugins: [onsetMark()], ...options }) };
};

function startMean() {
  const edge = { stroke: ink("band-edge"), width: 1, points: { show: false } };
  mean = start(["Users", "Mean", "95 % interval"], {
    series: [edge, edge, { stroke: ink("honest"), width: 2, points: points() }].map((line) => ({
      ...line,
    })),
    scales: { x: { range: timeRange } },
    bands: [{ series: [1, 2], fill: ink("band") }],
    axes: [timeAxis(), numberAxis({ label: plan.unit })],
    tip: (index) => [
      timeTitle(times()[index]),
      `mean ${meanWords(entries[index])}`,
      `95 % ${intervalWords(entries[index])}`,
      plural(entries[index].users, "user"),
    ],
  });
}

function startAttackers() {
  attackers = start(["Users", "Attackers"], {
    series: [{ stroke: ink("poison"), width: 2, dash: dashes(6, 3), points: points() }],
    scales: {
      x: { range: timeRange },
      y: { range: (_chart, _low, high) => [0, Math.max(0.05, 1.15 * high)] },
    },
    axes: [timeAxis(), percentAxis()],
    tip: (index) => [
      timeTitle(times()[index]),
      `attackers ${percent(entries[index].byzantine_fraction)}`,
      plural(entries[index].users, "user"),
    ],
  });
}
