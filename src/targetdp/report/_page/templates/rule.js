"use strict";
// The rule of `targetdp tradeoff recommend` and `agreement_by_distance`, as in the package: tests hold them side
// by side.

function recommendRule(DATA) {
  // What is shown and limited may be a difference; what is best is decided by the figure itself.
  const AIM = DATA.objective, mainAtMost = DATA.better === "smallest";
  const atWorst = (f) => (f[1] === null ? f[0] : f[1]);
  const atBest = (f) => (f[2] === null ? f[0] : f[2]);
  function holds(limit, figure) {
    if (!figure) { return false; }
    const end = limit.at_most === null ? atWorst(figure) : atBest(figure);
    if (end === null) { return false; }
    return limit.at_most === null ? end >= limit.at_least : end <= limit.at_most;
  }
  // Limits that have no control of their own stay as they were asked for.
  const controlled = (limit) => DATA.controls.some((one) => one.metric === limit.metric && one.at_most === (limit.at_most !== null));
  const stricter = (a, b) => (a.at_most === null ? a.at_least > b.at_least : a.at_most < b.at_most);
  function good(cell) {
    const value = cell.figures[AIM][0];
    if (value === null) { return -Infinity; }
    return mainAtMost ? -value : value;
  }
  function best(cells) {
    if (!cells.length) { return null; }
    const top = cells.reduce((a, b) => (good(b) > good(a) ? b : a));
    const [most, , , noise] = top.figures[AIM]; // all meet the same people: only noise tells them apart
    const equals = cells.filter((cell) => {
      const mean = cell.figures[AIM][0];
      return cell === top || (mean !== null && most !== null && Math.abs(mean - most) <= (noise || 0));
    });
    const far = (cell) => (cell.figures.distinguishing ? cell.figures.distinguishing[0] || 0 : 0);
    return equals.reduce((a, b) => (far(b) > far(a) || (far(b) === far(a) && b.promised_epsilon < a.promised_epsilon) ? b : a));
  }
  return { mainAtMost, atWorst, atBest, holds, controlled, stricter, good, best };
}

// What somebody typed, as a number: a decimal comma is a decimal comma. null for nothing, NaN for what is no
// number, or could be two ("9,840": 9840 or 9.84).
function typedNumber(text) {
  const plain = text.trim().replace(/(\d)[\s\u00a0\u202f](?=\d)/g, "$1").replace("−", "-");
  if (plain === "") { return null; }
  const grouped = /^[+-]?\d{1,3}(,\d{3})+\.\d+$|^[+-]?\d{1,3}(,\d{3}){2,}$/.test(plain);
  if (!grouped && /^[+-]?[1-9]\d{0,2}[.,]\d{3}$/.test(plain)) { return NaN; } // thousands, or a decimal?
  const number = grouped ? plain.replaceAll(",", "") : plain.replace(",", ".");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(number) ? Number(number) : NaN;
}

// How often decisions can agree with today's so many B away from the cut; never below the truth.
function highestAgreement(epsilon, delta, distance) {
  const total = Math.floor(distance) * epsilon, shrink = Math.exp(-epsilon), safe = 2 ** -49;
  const share = epsilon < 700 ? -Math.expm1(-total) / Math.expm1(epsilon) : Math.exp(-epsilon);
  const error = (1 - delta) * shrink / (1 + shrink) * Math.exp(-total) * (1 - safe) - delta * share * (1 + safe);
  return Math.min(1, 1 - error + 2 ** -52);
}
// Rounded up: nobody may read a lower ceiling than there is.
function roundedUp(gamma) {
  const whole = Math.ceil(gamma * 1e6);
  const millionths = whole / 1e6 < gamma ? whole + 1 : whole;
  return millionths >= 1e6 ? "1" : (millionths / 1e6).toFixed(6);
}
