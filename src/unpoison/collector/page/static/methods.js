/** The methods that a plan can be estimated by, with their names for people. */

const JOINT = ["joint", "Joint filter (default)"];
const FILTERS = [
  ["emf", "EMF"],
  ["emf-star", "EMF*"],
  ["cemf-star", "CEMF*"],
];
const AVERAGE = ["ostrich", "Ostrich: plain average"];
const RIVALS = [
  ["trimming", "Trimming"],
  ["boxplot", "Boxplot"],
  ["isolation-forest", "Isolation forest"],
  ["k-means", "k-means"],
  ["emf-boxplot", "EMF, then boxplot"],
  ["emf-isolation-forest", "EMF, then isolation forest"],
  ["emf-k-means", "EMF, then k-means"],
];

/** Pairs of a method's name and its label, the default first. */
export function methodsFor(plan) {
  if (plan.protocol === "baseline") {
    return [["baseline", "Baseline (default)"], AVERAGE, ...(plan.categories ? [] : RIVALS)];
  }
  if (!plan.categories) return [JOINT, ...FILTERS, AVERAGE, ...RIVALS];
  return [JOINT, ...FILTERS, AVERAGE];
}

/** Pairs of a query for a statistic and its label, the default first. */
export function statisticsFor(plan) {
  if (plan.categories) {
    return [
      ["statistic=frequencies&post_processing=norm-sub", "Frequencies that add up to 100 %"],
      ["statistic=frequencies&post_processing=clip", "Frequencies, each from 0 to 100 %"],
      ["statistic=frequencies&post_processing=none", "Frequencies, unbiased"],
    ];
  }
  return [
    ["statistic=mean", "Mean"],
    ["statistic=distribution", "Mean and distribution"],
  ];
}

/** Whether the method of an estimate looks for attackers: only such methods fit groups. */
export const looksForAttackers = (estimate) => estimate.groups.length > 0;
