/** The distribution of honest values in natural units, if the estimate has one. */

import { byId, show } from "./dom.js";
import { chartFigure } from "./figure.js";
import { percent } from "./format.js";
import { honestBars, numberAxis, percentAxis, plot } from "./plot.js";
import { between, valueFormat } from "./value-format.js";

let figure = null;
let chart = null;
let shown = null;
let format = null;
let middles = [];

export function showDistribution(plan, { distribution, interval }) {
  show(byId("distribution"), Boolean(distribution));
  if (!distribution) return;
  shown = distribution;
  format = valueFormat(plan, interval);
  if (!figure) start();
  middles = distribution.fractions.map(
    (_, index) => (distribution.edges[index] + distribution.edges[index + 1]) / 2,
  );
  chart.set([middles, distribution.fractions]);
  figure.describe("Share of honest users by value", quantileWords(distribution));
  figure.setRows(rows);
}

function quantileWords({ quantiles, quantile_intervals: intervals }) {
  if (!quantiles) return "";
  const quantile = (share) => format(quantiles[share]) + intervalWords(intervals?.[share]);
  return `Half of them are below ${quantile("0.5")}, a quarter below ${quantile("0.25")}, a quarter above ${quantile("0.75")}.`;
}

const intervalWords = (interval) => (interval ? ` (95 %: ${between(interval, format)})` : "");

function start() {
  figure = chartFigure({ columns: [{ title: "Values" }, { title: "Honest users", number: true }] });
  byId("distribution-chart").append(figure.node);
  chart = plot(figure.host, {
    series: [honestBars()],
    scales: {
      x: { time: false, range: () => [shown.edges[0], shown.edges.at(-1)] },
      y: { range: (_chart, _low, high) => [0, 1.08 * high] },
    },
    axes: [numberAxis({ size: 30, space: 60, label: format.unit }), percentAxis()],
    tip: (index) => [span(index), percent(shown.fractions[index])],
  });
}

const span = (index) => between([shown.edges[index], shown.edges[index + 1]], format);

const rows = () =>
  shown.fractions.map((share, index) => ({ key: index, cells: [span(index), percent(share)] }));
