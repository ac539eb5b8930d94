// What the page does when a limit moves. Sentences, curves and requests were written beforehand: nothing
// here computes a figure, but for the highest agreement at a point that the reader types in.
(async function () {
  async function unpacked(id) {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }
  const DATA = await unpacked("data"), SPECS = await unpacked("specs");
  const MAIN = DATA.metric;
  const choosable = DATA.cells.filter((cell) => cell.choosable);
  const byId = (id) => document.getElementById(id);
  const views = {};
  const limits = {};
  let picked = null; // a setting that the reader took; else the best one is chosen
  let chosen = null;
  const MOST_ROWS = 200; // a longer table would make sliders slow

  const whole = (value) => value.toLocaleString("en-US"); // counts of settings: all figures come as text

  // ---- limits, held against settings ----------------------------------------------------------------------
  const { atWorst, atBest, holds, controlled, stricter, good, best } = recommendRule(DATA);
  const fixed = DATA.asked.filter((limit) => !controlled(limit));
  const asked = () => [...Object.values(limits), ...fixed];
  let known = new Map(); // which limits a setting does not meet, until a limit changes
  function failing(cell) {
    if (!known.has(cell)) { known.set(cell, asked().filter((limit) => !holds(limit, cell.figures[limit.metric]))); }
    return known.get(cell);
  }

  // ---- what no algorithm can do -------------------------------------------------------------------------
  function showCeiling() {
    const epsilon = typedNumber(byId("t-epsilon").value), distance = typedNumber(byId("t-distance").value);
    const bad = !(epsilon > 0 && distance !== null && distance >= 0);
    byId("t-ceiling").textContent = bad ? "– (ε must be above 0, the distance 0 or more)" : roundedUp(highestAgreement(epsilon, DATA.delta, distance));
  }

  // ---- drawing ------------------------------------------------------------------------------------------
  const kindOf = (cell) => cell.label.split(", B = ")[0].split(", groups of")[0];
  function pointText(cell) {
    if (cell.B !== null) { return cell.B === 2 ? "2: classic" : `${cell.B}`; }
    return cell.group_size !== null ? `k = ${cell.group_size}` : "today";
  }
  function points(protection) {
    const epsilon = byId("epsilon") ? Number(byId("epsilon").value) : null;
    return withoutCollisions(DATA.cells
      .filter((cell) => (cell.epsilon === null || cell.epsilon === epsilon) && cell.figures[protection]
        && cell.figures[protection][0] !== null && cell.figures[MAIN][0] !== null)
      .map((cell) => {
        const x = cell.figures[protection], y = cell.figures[MAIN];
        // Settings that are equal in distribution are one release: they light up, and get the ring, with it.
        const made = cell.release === null ? null : DATA.cells[cell.release];
        const met = !failing(made || cell).length, fits = made !== null && met;
        const says = !met ? "not met" : made === null ? `met, but ${whyNoRelease(cell)}` : made === cell ? "met" : `met; released as ${made.label}`;
        const x_told = cell.told[protection], y_told = cell.told[MAIN], guess = cell.told.best_guess || "–", guess_at_2 = cell.told.best_guess_at_2 || "–";
        return {
          said: `${cell.label}: ${DATA.axis}: ${y_told}; protection: ${x_told}; best guess at B: ${guess}, at distance 2: ${guess_at_2}; your limits: ${says}`,
          kind: kindOf(cell), label: cell.label, curve: made !== null, order: cell.B || 0,
          x: x[0], x_low: atWorst(x), x_high: atBest(x), x_told: x_told,
          y: y[0], y_low: atWorst(y), y_high: atBest(y), y_told: y_told,
          text: pointText(cell), left: cell.mechanism === "projection" && x[0] > 0.15, fits: fits,
          chosen: chosen !== null && made === chosen, says: says, guess: guess, guess_at_2: guess_at_2,
        };
      }));
  }
  // Where many points lie on one spot only one of them is named; the others tell their names when pointed at.
  // A name that would stand in the ring of the chosen one goes to the other side of its point.
  function withoutCollisions(rows) {
    const reach = Math.max(...rows.map((one) => one.y)) - Math.min(...rows.map((one) => one.y)) || 1;
    const name = (one) => one.x + (one.left ? -0.09 : 0.09); // about its middle
    const near = (a, b) => Math.abs(name(a) - name(b)) < 0.17 && Math.abs(a.y - b.y) < 0.06 * reach;
    const ringed = rows.find((one) => one.chosen);
    for (const one of rows) {
      if (ringed && one !== ringed && Math.abs(name(one) - ringed.x) < 0.1 && Math.abs(one.y - ringed.y) < 0.09 * reach) { one.left = !one.left && one.x > 0.15; }
    }
    const named = [];
    for (const one of [...rows].sort((a, b) => b.chosen - a.chosen || (b.order === 2) - (a.order === 2))) {
      if (named.some((other) => near(one, other))) { one.text = ""; } else { named.push(one); }
    }
    return rows;
  }
  const whyNoRelease = (cell) => (cell.condition ? `only if ${cell.condition}: no request can be written from here`
    : cell.epsilon !== null ? "no request can ask for it"
    : cell.group_size !== null ? "it has no guarantee" : "it is the table as it is");
  // Before a chart is drawn its data wait in its specification; afterwards they go to its view.
  function give(id, name, rows) {
    if (views[id]) { views[id].data(name, rows).runAsync(); }
    else if (SPECS[id]) { (SPECS[id].datasets = SPECS[id].datasets || {})[name] = rows; }
  }
  function row(cells, kind) {
    const line = document.createElement("tr");
    if (kind) { line.className = kind; }
    for (const text of cells) {
      const cell = document.createElement("td");
      if (text instanceof Node) { cell.append(text); } else { cell.textContent = text; }
      line.append(cell);
    }
    return line;
  }
  // A figure over its interval: narrow, so that a table fits the page.
  function stacked(text) {
    const [mean, interval] = text.split(" (");
    if (interval === undefined) { return mean; }
    const cell = document.createDocumentFragment(), small = document.createElement("span");
    small.className = "interval"; small.textContent = `(${interval}`;
    cell.append(mean, " ", small);
    return cell;
  }
  const unbroken = (label) => label.replaceAll(" = ", "\u00a0=\u00a0");
  function fill(id, rows) {
    const body = document.querySelector(`#${id} tbody`);
    if (body) { body.replaceChildren(...rows); }
  }

  function showSettings() {
    const fitting = choosable.filter((cell) => !failing(cell).length);
    const order = [...choosable].sort((a, b) => failing(a).length - failing(b).length || good(b) - good(a));
    const shown = order.slice(0, MOST_ROWS);
    if (chosen !== null && !shown.includes(chosen)) { shown.push(chosen); }
    byId("unlisted").textContent = shown.length === order.length ? ""
      : `${whole(order.length - shown.length)} more settings are not listed here: they serve the program less, or meet fewer limits. All are in the table of section 2.`;
    fill("settings", shown.map((cell) => {
      const fits = !failing(cell).length, radio = document.createElement("input");
      radio.type = "radio"; radio.name = "setting"; radio.value = String(cell.i);
      radio.checked = cell === chosen; radio.disabled = !fits;
      radio.setAttribute("aria-label", `Choose ${cell.label}`);
      radio.addEventListener("change", () => { picked = cell; showEpsilon(cell); update(false); });
      return row([radio, unbroken(cell.label), fits ? "✓ yes" : "✗ no: " + failing(cell).map(nameOf).join(", "),
        ...DATA.columns.filter(([name]) => name !== "accuracy").map(([name]) => stacked(cell.told[name]))],
        (fits ? "fits" : "pale") + (cell === chosen ? " taken" : ""));
    }));
    return fitting;
  }
  const nameOf = (limit) => { const own = DATA.controls.find((one) => one.metric === limit.metric); return own ? own.name : limit.name; };
  function showVerdict(fitting) {
    const box = byId("verdict");
    if (fitting.length) {
      box.textContent = `${fitting.length} of ${choosable.length} settings ${fitting.length === 1 ? "meets" : "meet"} your limits.`;
      return;
    }
    const out = asked().map((limit) => ({ limit: limit, many: choosable.filter((cell) => !holds(limit, cell.figures[limit.metric])).length }));
    const worst = out.reduce((a, b) => (b.many > a.many ? b : a), out[0]);
    box.textContent = !choosable.length ? "This sweep has no setting that could be released with a guarantee."
      : `None of the ${choosable.length} settings meets all of your limits. “${nameOf(worst.limit)}” rules out the most: ${worst.many}. `
        + out.filter((one) => one !== worst).map((one) => `“${nameOf(one.limit)}” rules out ${one.many}.`).join(" ");
  }
  function showPicked() {
    const box = byId("picked");
    box.replaceChildren(); box.hidden = chosen === null;
    byId("download").disabled = chosen === null || unreadable.size > 0;
    if (chosen === null) { return; }
    const name = document.createElement("p"), strong = document.createElement("strong");
    strong.textContent = unbroken(chosen.label);
    name.append("Chosen: ", strong);
    const cost = document.createElement("p"); cost.textContent = chosen.cost; cost.className = "lead";
    const list = document.createElement("ul");
    for (const text of [...chosen.exchange, chosen.derived]) {
      const item = document.createElement("li"); item.textContent = text; list.append(item);
    }
    const said = document.createElement("p"), link = document.createElement("a");
    link.href = "#conditions"; link.textContent = "on conditions";
    said.append(`It promises ${chosen.promise_told}, `, link, ".");
    box.append(name, cost, list, said);
  }
  function showMeaning() {
    if (byId("crowd")) { byId("crowd").textContent = chosen === null ? "Choose a setting to see what its B means." : chosen.crowd; }
    const curve = chosen === null ? [] : chosen.curve.map(([r, epsilon, guess]) =>
      ({ r: r, epsilon: epsilon, guess: guess, is_B: r === chosen.B, name: r === chosen.B ? `B = ${r}` : "" }));
    give("chart-epsilon", "curve", curve.filter((at) => at.epsilon !== null));
    give("chart-guess", "curve", curve);
    const profiles = chosen === null ? [] : chosen.profiles || [];
    fill("people", profiles.map((told, i) => row([DATA.features[i], ...told], told[0] === told[1] ? "" : "fits")));
    if (byId("ceiling-said")) {
      const steps = chosen === null ? [] : chosen.agreement;
      byId("ceiling-said").textContent = chosen === null ? ""
        : `The chosen setting promises ${chosen.promise_told}. Next to the cut, γ is at most ${roundedUp(steps[0][1])}`
          + (steps.length > 2 ? `; for people one B away from it, agreement is at most ${roundedUp(steps[1][1])} then.` : ", and that holds at every distance below 2.");
      give("chart-ceiling", "chosen", steps.map(([cell, share], i) => ({ cell: cell, share: share, told: roundedUp(share), label: chosen.label, name: i === steps.length - 1 ? "chosen" : "" })));
    }
  }
  function showGroups() {
    if (!DATA.groups.of.length || DATA.groups.too_many) { return; }
    const groups = chosen === null ? [] : chosen.groups, drawn = DATA.groups.headings.length - DATA.groups.changes;
    const named = DATA.groups.of.map(([column, name]) => `${column}: ${name}`);
    give("chart-groups", "groups", groups.map((group, i) => {
      const [mean, low, high] = group.drawn;
      return { name: named[i], mean: mean, low: low === null ? mean : low, high: high === null ? mean : high, told: group.told[drawn] };
    }).filter((one) => one.mean !== null));
    give("chart-groups", "zero", [{ x: 0 }]);
    byId("worst-hit").textContent = chosen === null ? "" : chosen.worst_hit;
    fill("groups", groups.map((group, i) => row([named[i], DATA.groups.of[i][2], ...group.told.map(stacked)])));
  }

  // ---- what moves ---------------------------------------------------------------------------------------
  const values = DATA.cells.map((cell) => cell.figures[MAIN]).filter((f) => f && f[0] !== null).map((f) => (DATA.better === "smallest" ? atBest(f) : atWorst(f)));
  const span = [Math.min(...values), Math.max(...values)];
  const fromRange = (place) => Number((span[0] + (span[1] - span[0]) * (place / 1000)).toPrecision(4));
  const toRange = (value) => (span[1] === span[0] ? 0 : Math.round(1000 * (value - span[0]) / (span[1] - span[0])));

  // Every control has a field and a slider; at its loose end a slider asks for nothing.
  const controls = DATA.controls.map((one) => {
    const main = one.metric === MAIN, id = main ? "main" : one.metric;
    return { ...one, main: main, field: byId(`n-${id}`), slider: byId(`r-${id}`), loose: main ? (one.at_most ? 1000 : 0) : one.at_most ? one.high : one.low };
  });
  const unreadable = new Set();
  function setLimit(control, value) {
    known = new Map();
    if (value === null) { delete limits[control.metric]; return; }
    limits[control.metric] = { metric: control.metric, at_least: control.at_most ? null : value, at_most: control.at_most ? value : null };
  }
  function showSlider(control, value) { control.slider.value = value === null ? control.loose : control.main ? toRange(value) : value; }
  function showLimits() {
    unreadable.clear(); tellUnreadable();
    for (const one of controls) {
      const limit = limits[one.metric], value = !limit ? null : one.at_most ? limit.at_most : limit.at_least;
      one.field.value = value === null ? "" : value; showSlider(one, value);
    }
  }
  function showEpsilon(cell) { if (byId("epsilon")) { byId("epsilon").value = String(cell.epsilon); } }
  function update(anew) {
    if (anew) { picked = null; }
    const fitting = choosable.filter((cell) => !failing(cell).length);
    chosen = picked !== null && fitting.includes(picked) ? picked : best(fitting);
    if (chosen !== null && anew) { showEpsilon(chosen); }
    const focused = document.activeElement && document.activeElement.name === "setting" ? document.activeElement.value : null;
    showVerdict(showSettings()); showPicked(); showMeaning(); showGroups();
    for (const name of DATA.protections) { give(`chart-${name}`, "points", points(name)); }
    if (byId("epsilon")) { byId("epsilon-shown").textContent = byId("epsilon").value; }
    if (focused !== null) { const again = document.querySelector(`input[name="setting"][value="${focused}"]`); if (again) { again.focus(); } }
  }
  // What is no number, or out of range, changes nothing: the limit before it still holds, and nothing can be
  // downloaded until it is mended.
  function tellUnreadable() {
    for (const one of controls) { one.field.setAttribute("aria-invalid", unreadable.has(one) ? "true" : "false"); }
    byId("unreadable").textContent = [...unreadable].map((one) =>
      `“${one.field.value}” is no ${one.main ? "number that can be read (write 9840 or 0.5, not 9,840)" : `number from ${one.low} to ${one.high} (write 0.95 or 0,95)`}: the limit before it still holds, and nothing can be downloaded.`).join(" ");
  }
  function listen() {
    for (const one of controls) {
      one.field.addEventListener("input", () => {
        const value = typedNumber(one.field.value);
        const bad = Number.isNaN(value) || (value !== null && !one.main && (value < one.low || value > one.high));
        if (bad) { unreadable.add(one); } else { unreadable.delete(one); setLimit(one, value); showSlider(one, value); }
        tellUnreadable(); update(!bad);
      });
      one.slider.addEventListener("input", () => {
        const place = Number(one.slider.value);
        setLimit(one, place === one.loose ? null : one.main ? fromRange(place) : place); showLimits(); update(true);
      });
    }
    byId("needs").addEventListener("reset", (event) => { event.preventDefault(); begin(); });
    if (byId("epsilon")) { byId("epsilon").addEventListener("change", () => update(false)); }
    if (byId("t-epsilon")) { for (const id of ["t-epsilon", "t-distance"]) { byId(id).addEventListener("input", showCeiling); } }
    byId("download").addEventListener("click", download);
    // On paper nobody can open what is folded; a table of all settings would be many pages.
    const folded = [...document.querySelectorAll("details")].filter((one) => !one.querySelector("table") && !one.open);
    window.addEventListener("beforeprint", () => folded.forEach((one) => { one.open = true; }));
    window.addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
  }
  function download() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([chosen.toml], { type: "application/toml" }));
    link.download = "request.toml";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  function begin() {
    known = new Map();
    for (const metric of Object.keys(limits)) { delete limits[metric]; }
    for (const one of DATA.asked.filter(controlled)) {
      const before = limits[one.metric]; // asked for twice: the stricter counts
      if (!before || stricter(one, before)) { limits[one.metric] = one; }
    }
    showLimits(); update(true);
  }

  byId("fixed").textContent = fixed.length ? `Also asked for, and not to be moved here: ${fixed.map((limit) => limit.words).join("; ")}.` : "";
  const epsilons = [...new Set(DATA.cells.map((cell) => cell.epsilon).filter((e) => e !== null))].sort((a, b) => a - b);
  if (byId("epsilon")) { byId("epsilon").append(...epsilons.map((e) => new Option(String(e), String(e)))); }
  listen(); begin();
  if (byId("t-epsilon")) { showCeiling(); }
  // `ast`: expressions are interpreted, so that the page needs no right to evaluate text.
  const embedded = Object.entries(SPECS).filter(([id]) => byId(id)).map(([id, spec]) =>
    vegaEmbed(byId(id), spec, { mode: "vega-lite", actions: false, renderer: "svg", ast: true, logLevel: 1 })
      .then((made) => { views[id] = made.view; }));
  Promise.all(embedded).then(() => { update(false); document.body.dataset.ready = "yes"; });
  window.targetdpPage = { agreement: highestAgreement, specs: () => SPECS, chosen: () => (chosen === null ? null : chosen.name), fitting: () => choosable.filter((c) => !failing(c).length).map((c) => c.name) };
})();
