/** Charts of the estimate and the share of attackers over time. */

import { byId, setText, show } from "./dom.js";
import { chartFigure } from "./figure.js";
import { count, dateTime, percent, plural } from "./format.js";
import { dashes, ink, numberAxis, percentAxis, plot, timeAxis, timeTitle } from "./plot.js";
import { between, valueFormat } from "./value-format.js";

/** Up to this many estimates each is marked by a point; more would merge into a band. */
const MOST_POINTS = 60;
let entries = [];
let plan = null;
let mean = null;
let attackers = null;

/** Show the past estimates of one method. */
export function showHistory(status, method) {
  ({ plan } = status);
  entries = status.estimates.filter((entry) => entry.method === method);
  show(byId("history"), status.estimates.length > 0);
  show(byId("history-empty"), !entries.length);
  show(byId("history-charts"), entries.length > 0);
  setText(byId("history-empty"), "Nothing was recorded for this method yet.");
  if (!entries.length) return;
  if (!plan.categories) showMean();
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
    `Latest: ${percent(last.byzantine_fraction)} at ${dateTime(last.at)}.`,
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

const start = (names, options) => {
  const columns = [{ title: "At" }, ...names.map((title) => ({ title, number: true }))];
  const figure = chartFigure({ columns });
  byId("history-charts").append(figure.node);
  return { figure, chart: plot(figure.host, { sync: "history", ...options }) };
};

function startMean() {
  const edge = { stroke: ink("band-edge"), width: 1, points: { show: false } };
  mean = start(["Users", "Mean", "95 % interval"], {
    series: [edge, edge, { stroke: ink("honest"), width: 2, points: points() }].map((line) => ({
      ...line,
    })),
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
    scales: { y: { range: (_chart, _low, high) => [0, Math.max(0.05, 1.15 * high)] } },
    axes: [timeAxis(), percentAxis()],
    tip: (index) => [
      timeTitle(times()[index]),
      `attackers ${percent(entries[index].byzantine_fraction)}`,
      plural(entries[index].users, "user"),
    ],
  });
}
