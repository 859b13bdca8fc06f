/** The distribution of honest values in natural units, if the estimate has one. */

import { byId, show } from "./dom.js";
import { chartFigure } from "./figure.js";
import { percent, toWidth } from "./format.js";
import { honestBars, numberAxis, percentAxis, plot } from "./plot.js";

let figure = null;
let chart = null;
let shown = null;
let middles = [];

export function showDistribution({ distribution }) {
  show(byId("distribution"), Boolean(distribution));
  if (!distribution) return;
  if (!figure) start();
  shown = distribution;
  middles = distribution.fractions.map(
    (_, index) => (distribution.edges[index] + distribution.edges[index + 1]) / 2,
  );
  chart.set([middles, distribution.fractions]);
  const value = format();
  figure.describe("Share of honest users by value", quantileWords(distribution, value));
  figure.setRows(rows);
}

const format = () => toWidth((shown.edges.at(-1) - shown.edges[0]) / 10);

function quantileWords({ quantiles, quantile_intervals: intervals }, value) {
  if (!quantiles) return "";
  const quantile = (share) => value(quantiles[share]) + between(intervals?.[share], value);
  return `Half of them are below ${quantile("0.5")}, a quarter below ${quantile("0.25")}, a quarter above ${quantile("0.75")}.`;
}

const between = (interval, value) =>
  interval ? ` (95 %: ${value(interval[0])} to ${value(interval[1])})` : "";

function start() {
  figure = chartFigure({ columns: [{ title: "Values" }, { title: "Honest users", number: true }] });
  byId("distribution-chart").append(figure.node);
  chart = plot(figure.host, {
    series: [honestBars()],
    scales: {
      x: { time: false, range: () => [shown.edges[0], shown.edges.at(-1)] },
      y: { range: (_chart, _low, high) => [0, 1.08 * high] },
    },
    axes: [numberAxis({ size: 30, space: 60 }), percentAxis()],
    tip: (index) => [span(index), percent(shown.fractions[index])],
  });
}

const span = (index) => `${format()(shown.edges[index])} to ${format()(shown.edges[index + 1])}`;

const rows = () =>
  shown.fractions.map((share, index) => ({ key: index, cells: [span(index), percent(share)] }));
