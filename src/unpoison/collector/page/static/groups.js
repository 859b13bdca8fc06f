/** Enrolment, and the sizes of the groups. */

import { byId, setText } from "./dom.js";
import { count, epsilon, percent, plural } from "./format.js";
import { dataTable, scrolling } from "./table.js";

const table = dataTable({
  id: "groups",
  caption: "Groups with their budget, enrolled users and submissions",
  columns: [
    { title: "Group" },
    { title: "ε a report", number: true },
    { title: "Reports a user", number: true },
    { title: "Enrolled", number: true },
    { title: "Reported", number: true },
  ],
});

export function showGroups(status) {
  const host = byId("groups-table");
  if (!table.node.isConnected) host.append(scrolling("Groups", table.node));
  setText(byId("enrolment-text"), enrolmentWords(status));
  setText(byId("balance-text"), balanceWords(status.groups));
  const most = Math.max(1, ...status.groups.map((group) => group.enrolled));
  const tiers = new Set(status.groups.map((group) => group.tier)).size > 1;
  table.update(status.groups.map((group) => row(group, most, tiers)));
}

function row(
  { group, tier, epsilon: budget, reports_each: reports, enrolled, submissions },
  most,
  tiers,
) {
  return {
    key: group,
    cells: [
      tiers ? `${group} (tier ${tier})` : String(group),
      epsilon(budget),
      count(reports),
      { text: count(enrolled), bar: enrolled / most },
      { text: count(submissions), bar: submissions / most },
    ],
  };
}

function enrolmentWords({ access, enrolled, submissions, reports, invites }) {
  const sent = `${plural(enrolled, "user")} enrolled, ${count(submissions)} of them reported, with ${plural(reports, "noisy value")} in all.`;
  if (access !== "invite") return sent;
  return `${sent} ${count(invites.used)} of ${plural(invites.issued, "invite")} used.`;
}

/** The largest difference between groups of a tier; assignment in blocks keeps it small. */
function balanceWords(groups) {
  const tiers = Map.groupBy ? [...Map.groupBy(groups, (group) => group.tier).values()] : [groups];
  const gaps = tiers.map((tier) => {
    const sizes = tier.map((group) => group.enrolled);
    return [Math.max(...sizes) - Math.min(...sizes), Math.max(...sizes)];
  });
  const [gap, most] = gaps.reduce((worst, next) => (next[0] > worst[0] ? next : worst));
  if (!most) return "Groups are filled evenly and at random as devices enrol.";
  if (!gap) return "All groups have the same size.";
  return `Largest and smallest group differ by ${plural(gap, "user")} (${percent(gap / most)}).`;
}
