"use strict";
// What settings share is written once on the page (compact.py): here each gets its own again.
function unfolded(DATA) {
  const text = ([pattern, numbers]) => {
    const given = numbers.split(" ");
    return DATA.patterns[pattern].map((part, i, all) => part + (i + 1 < all.length ? given[i] : "")).join("");
  };
  for (const cell of DATA.cells) {
    cell.label = text(cell.label);
    if (!cell.choosable) { continue; }
    for (const name of ["cost", "derived", "promise_told", "toml"]) { cell[name] = text(cell[name]); }
    cell.exchange = cell.exchange.map(text);
    const { guess, epsilon, own } = cell.curve;
    const shared = DATA.distances.map((r, i) => [r, i in epsilon ? epsilon[i] : null, guess[i]]);
    cell.curve = [...shared, ...own].sort((a, b) => a[0] - b[0]);
    Object.assign(cell, DATA.by_B[cell.by_B]);
  }
  return DATA;
}
