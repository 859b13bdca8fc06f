/** Enrolment, and the sizes of the groups. */

import { byId, setText } from "./dom.js";
import { count, epsilon, percent, plural, probability } from "./format.js";
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
  setText(byId("balance-text"), balanceWords(status));
  byId("balance-text").className = status.balance.broken ? "message warning" : "lead";
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

/** The shares of enrolled users who reported, from the smallest to the largest, and the test. */
function balanceWords({ groups, balance }) {
  const filled = groups.filter((group) => group.enrolled);
  if (!filled.length) return "Groups are filled evenly and at random as devices enrol.";
  const shares = filled.map((group) => group.submissions / group.enrolled);
  const [least, most] = [Math.min(...shares), Math.max(...shares)].map(percent);
  const spread =
    least === most
      ? `${least} of the enrolled users of each group reported`
      : `From ${least} to ${most} of the enrolled users of a group reported`;
  if (balance.broken)
    return `Groups do not report alike (p\u00a0=\u00a0${probability(balance.p_value)}). ${spread}. Somebody reports in some groups alone, or users of some groups stop: groups are random, and honest users do not choose by them.`;
  return `${spread}: no more different than chance allows.`;
}
