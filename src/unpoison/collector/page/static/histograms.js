/** Charts of each group: all reports, the fitted honest part, and the estimated poison. */

import { byId, element, keyed, show } from "./dom.js";
import { categoryBars, categoryLegend } from "./category-bars.js";
import { chartFigure, legend } from "./figure.js";
import { count, epsilon, percent, plural } from "./format.js";
import { binBars, binSteps, binsAbove, ink, numberAxis, percentAxis, plot } from "./plot.js";
import { colour, hatched } from "./theme.js";

const LEGEND = [
  ["observed", "All reports"],
  ["honest", "Fitted honest part"],
  ["poison", "Estimated poison"],
];
const COLUMNS = [
  { title: "Cells" },
  { title: "All reports", number: true },
  { title: "Honest", number: true },
  { title: "Poison", number: true },
];

/** The chart of each group, by the group's number. */
const charts = new Map();
/** The highest bar of all groups: they share a scale, so that they can be compared. */
let highest = 0.01;

export function showHistograms(plan, estimate) {
  const groups = estimate.groups.filter((group) => group.picture);
  show(byId("histograms"), groups.length > 0);
  if (!groups.length) return;
  const explained = byId("histograms-legend");
  if (!explained.children.length)
    explained.append(plan.categories ? categoryLegend() : legend(LEGEND));
  byId("histograms-list").classList.toggle("slim", Boolean(plan.categories));
  // Three in a row would leave one alone below.
  byId("histograms-list").classList.toggle("twos", groups.length % 3 === 1);
  highest = Math.max(...groups.flatMap(({ picture }) => heights(picture)));
  keyed(byId("histograms-list"), groups, {
    key: (group) => group.group,
    create: (group) => start(group, plan),
    update: (_node, group) => charts.get(group.group).update(group),
  });
}

const heights = ({ observed, honest, poison }) => [
  ...observed,
  ...honest.map((share, index) => share + poison[index]),
];

function start(group, plan) {
  const groupChart = plan.categories ? categoryChart(plan.categories) : numberChart();
  charts.set(group.group, groupChart);
  return groupChart.node;
}

const heading = ({ group, epsilon: budget }) => `Group ${group}, ε = ${epsilon(budget)}`;
const note = ({ reports, byzantine_fraction: share }) =>
  `${plural(reports, "report")}, ${percent(share)} poison`;

function categoryChart(categories) {
  const drawing = categoryBars(categories);
  const title = element("h3", { class: "figure-title" });
  const words = element("p", { class: "figure-note" });
  const node = element("figure", {}, element("figcaption", {}, title, words), drawing.node);
  const update = (group) => {
    title.textContent = heading(group);
    words.textContent = note(group);
    drawing.update(group.picture, highest, heading(group));
  };
  return { node, update };
}

const noPoints = { show: false };
/** Place of the honest part among a chart's series: poison stands on top of it. */
const HONEST = 3;
const poisonFill = (chart) => hatched(chart.ctx, colour("poison"));

function numberChart() {
  const figure = chartFigure({ columns: COLUMNS });
  let picture = null;
  const chart = plot(figure.host, {
    binned: true,
    series: [
      {
        stroke: ink("observed-edge"),
        fill: ink("observed"),
        width: 1,
        paths: binBars,
        points: noPoints,
      },
      { stroke: ink("poison"), fill: poisonFill, width: 0, paths: binsAbove(HONEST), points: noPoints },
      { stroke: ink("honest"), width: 2.5, paths: binSteps, points: noPoints },
    ],
    scales: {
      x: { time: false, range: () => [picture.edges[0], picture.edges.at(-1)] },
      y: { range: () => [0, 1.06 * highest] },
    },
    axes: [numberAxis({ size: 28, label: "Reported cell", space: 60 }), percentAxis()],
    tip: (index) => tip(picture, index),
  });
  const update = (group) => {
    picture = group.picture;
    figure.describe(heading(group), note(group));
    chart.set(histogramSeries(picture));
    figure.setRows(() => rows(picture));
  };
  return { node: figure.node, update };
}

/**
 * The series of a chart: bars begin at left edges, and the line runs on to the last edge. Poison
 * ends where it and the honest part together do, which is about what was observed.
 */
const histogramSeries = ({ edges, observed, honest, poison }) => [
  edges,
  [...observed, null],
  [...poison.map((share, index) => (share ? honest[index] + share : null)), null],
  [...honest, honest.at(-1)],
];

const cells = ({ edges }, index) => `${count(edges[index])} to ${count(edges[index + 1] - 1)}`;

const tip = (picture, index) => [
  `cells ${cells(picture, index)}`,
  `all ${percent(picture.observed[index])}`,
  `honest ${percent(picture.honest[index])}`,
  `poison ${percent(picture.poison[index])}`,
];

const rows = (picture) =>
  picture.observed.map((share, index) => ({
    key: index,
    cells: [
      cells(picture, index),
      percent(share),
      percent(picture.honest[index]),
      percent(picture.poison[index]),
    ],
  }));
