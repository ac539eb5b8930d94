"use strict";
// The rule of `targetdp tradeoff recommend`, as in the package: tests hold them side by side.

function recommendRule(DATA) {
  // What is shown and limited may be a difference; what is best is decided by the figure itself.
  const AIM = DATA.objective, isSmallestBest = DATA.better === "smallest";
  const atWorst = (f) => (f[1] === null ? f[0] : f[1]);
  const atBest = (f) => (f[2] === null ? f[0] : f[2]);
  function holds(limit, figure) {
    if (!figure) { return false; }
    const end = limit.at_most === null ? atWorst(figure) : atBest(figure);
    if (end === null) { return false; }
    return limit.at_most === null ? end >= limit.at_least : end <= limit.at_most;
  }
  // Limits that have no control of their own stay as they were asked for.
  const controlled = (limit) => DATA.limits.some((one) => one.metric === limit.metric && one.at_most === (limit.at_most !== null));
  const stricter = (a, b) => (a.at_most === null ? a.at_least > b.at_least : a.at_most < b.at_most);
  function good(cell) {
    const value = cell.figures[AIM][0];
    if (value === null) { return -Infinity; }
    return isSmallestBest ? -value : value;
  }
  // The less anybody can tell, the earlier: a best guess, then an insider, then a stranger.
  function isSafer(a, b) {
    const at = a.order.findIndex((share, i) => share !== b.order[i]);
    return at >= 0 && a.order[at] < b.order[at];
  }
  // All that are equally good for the program up to chance, the safest of them first.
  function equals(cells) {
    if (!cells.length) { return []; }
    const top = cells.reduce((a, b) => (good(b) > good(a) ? b : a));
    const [most, , , noise] = top.figures[AIM]; // all meet the same people: only noise tells them apart
    const alike = cells.filter((cell) => {
      const mean = cell.figures[AIM][0];
      return cell === top || (mean !== null && most !== null && Math.abs(mean - most) <= (noise || 0));
    });
    const safest = alike.reduce((a, b) => (isSafer(b, a) ? b : a));
    return [safest, ...alike.filter((cell) => cell !== safest)];
  }
  return { holds, controlled, stricter, equals };
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
