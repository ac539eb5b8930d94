(async function () {
  async function unpack(id) {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
  }
  const DATA = await unpack("data"), rule = recommendRule(DATA);
  const byId = (id) => document.getElementById(id), all = (query) => [...document.querySelectorAll(query)];
  const settings = DATA.settings, byNumber = new Map(settings.map((one) => [one.i, one]));
  const STEPS = ["options", "protect", "afford", "bear", "check", "send", "annex"];
  const fixed = DATA.asked.filter((limit) => !rule.controlled(limit));
  const optionNames = new Map(DATA.options.map(([name, i]) => [i, name])), firstWhy = byId("why") ? byId("why").textContent : "";
  let limits = {}, picked = null, advised = null, chosen = null;
  const unreadable = new Map();

  // ---- limits -------------------------------------------------------------------------------------------
  const fields = DATA.limits.map((one) => ({ ...one, field: byId(`n-${one.metric}`) }));
  const asked = () => [...fixed, ...Object.values(limits)];
  let known = new Map();
  function failing(one) {
    if (!known.has(one)) { known.set(one, asked().filter((limit) => !rule.holds(limit, one.figures[limit.metric]))); }
    return known.get(one);
  }
  const nameOf = (limit) => { const own = DATA.limits.find((one) => one.metric === limit.metric && one.at_most === (limit.at_most !== null)); return own ? own.name : limit.name; };
  const valueOf = (limit) => (limit.at_most === null ? limit.at_least : limit.at_most);
  // Of 100, with all digits that were typed: 57.3 of 100 is the number 0.573 and no other.
  const inHundred = (value) => String(Number((value * 100).toPrecision(14)));
  const shownOf = (one, value) => (one.hundred ? inHundred(value) : String(value));
  function inWords(limit) {
    const own = DATA.limits.find((one) => one.metric === limit.metric && one.at_most === (limit.at_most !== null));
    return own ? own.sentence.replace("{}", shownOf(own, valueOf(limit))) : limit.words;
  }
  function setLimit(one, value) {
    known = new Map();
    if (value === null) { delete limits[one.metric]; } else {
      limits[one.metric] = { metric: one.metric, at_least: one.at_most ? null : value, at_most: one.at_most ? value : null };
    }
  }
  function typed(one) {
    const value = typedNumber(one.field.value);
    if (value === null || Number.isNaN(value) || !one.hundred) { return value; }
    const [digits, power] = String(value).split("e");
    return Number(`${digits}e${Number(power || 0) - 2}`);
  }
  function showLimits() {
    unreadable.clear();
    for (const one of fields) {
      const limit = limits[one.metric];
      one.field.value = limit ? shownOf(one, valueOf(limit)) : "";
    }
    tellUnreadable();
  }
  // What is no number, or out of range, changes nothing: the limit before it still holds, and nothing can be
  // downloaded until it is mended.
  function tellUnreadable() {
    for (const one of fields) { one.field.setAttribute("aria-invalid", unreadable.has(one) ? "true" : "false"); }
    for (const at of all("[data-unreadable]")) {
      at.textContent = [...unreadable].filter(([one]) => one.step === at.dataset.unreadable).map(([one, words]) =>
        `“${words}” is no ${one.hundred ? `number from ${100 * one.low} to ${100 * one.high} (write 79.5 or 79,5)` : "number that can be read (write 9840 or 0.5, not 9,840)"}: the limit before it still holds, and nothing can be downloaded.`).join(" ");
    }
  }

  // ---- what is shown ------------------------------------------------------------------------------------
  const text = (id, words) => { const at = byId(id); if (at) { at.textContent = words; } };
  function list(id, lines) {
    const at = byId(id);
    if (at) { at.replaceChildren(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line }))); }
  }
  function showVerdict(fitting) {
    let words = settings.length ? `${fitting.length} of ${settings.length} settings ${fitting.length === 1 ? "meets" : "meet"} your limits.`
      : "This sweep has no setting that could be released with a guarantee.";
    if (settings.length && !fitting.length) {
      const out = asked().map((limit) => ({ limit, many: settings.filter((one) => !rule.holds(limit, one.figures[limit.metric])).length }));
      const worst = out.reduce((a, b) => (b.many > a.many ? b : a));
      words = `None of the ${settings.length} settings meets all of your limits. “${nameOf(worst.limit)}” rules out the most: ${worst.many}. `
        + out.filter((one) => one !== worst).map((one) => `“${nameOf(one.limit)}” rules out ${one.many}.`).join(" ");
    }
    text("verdict", words);
  }
  // Why the recommended setting is, as the package says it of the limits that the page began with.
  function showWhy(equals, many) {
    if (state().toString() === began) { text("why", firstWhy); return; }
    if (advised === null) { text("why", "Nothing is recommended: no setting meets your limits."); return; }
    const name = optionNames.get(advised.i) || advised.label;
    const because = many === 1 ? "it is the only setting that meets them."
      : equals > 1 ? `of the ${many} settings that meet them ${equals} serve the program equally well up to chance; of these it leaves least to anybody's best guess, then to an insider.`
      : `of the ${many} settings that meet them, ${DATA.best}.`;
    text("why", `With your limits ${name} ${DATA.advised}: ${because}`);
  }
  function showMissed(at, one) {
    const missed = failing(one);
    at.hidden = !missed.length;
    at.textContent = `limit missed: ${missed.map(nameOf).join(", ")}`;
  }
  function showTags() {
    DATA.options.forEach(([, i], k) => {
      const one = byNumber.get(i), isAdvised = advised !== null && advised.i === i;
      for (const at of all(`label[for=o${k + 1}] .tick`)) { at.hidden = !isAdvised; }
      const head = document.querySelector(`th.c${k + 1}`);
      head.classList.toggle("advised", isAdvised);
      head.querySelector(".taken-tag").hidden = isAdvised || chosen === null || chosen.i !== i;
      showMissed(head.querySelector(".out-tag"), one);
    });
    if (chosen !== null && byId("own-tick")) { byId("own-tick").hidden = chosen !== advised; showMissed(byId("own-out"), chosen); }
  }
  function showOwn() {
    const numbers = DATA.options.map(([, i]) => i), own = chosen !== null && !numbers.includes(chosen.i);
    for (const at of all(".c9")) { at.hidden = !own; }
    if (byId("own-tab")) { byId("own-tab").hidden = !own; }
    if (chosen === null) { for (const at of all("input[name=option]")) { at.checked = false; } return; }
    const place = own ? "9" : String(numbers.indexOf(chosen.i) + 1);
    byId(`o${place}`).checked = true;
    if (!own) { return; }
    text("own-kind", chosen.label);
    chosen.grid.forEach(([large, small], row) => {
      const cell = byId(`own-${row}`), big = Object.assign(document.createElement("span"), { className: "big", textContent: large });
      const lines = [];
      for (const line of small) {
        if (line.startsWith("(")) { lines.at(-1).append(" ", Object.assign(document.createElement("span"), { className: "whole", textContent: line })); }
        else { lines.push(Object.assign(document.createElement("small"), { textContent: line })); }
      }
      cell.replaceChildren(...(row === 3 ? [dots(chosen.dots)] : []), big, ...lines);
    });
  }
  // As `dots` of the package draws them.
  function dots([near, far]) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    if (near === null || far === null) { return svg; }
    const many = (share) => Math.min(100, Math.ceil(100 * share - 1e-9)), full = many(near), half = many(Math.max(near, far));
    svg.setAttribute("class", "dots"); svg.setAttribute("viewBox", "0 0 152 26"); svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${full} of 100` + (half > full ? `, and ${half} of 100 for people who are not alike` : ""));
    for (const [kind, count] of [["none", 100], ["half", half], ["full", full]]) {
      const path = document.createElementNS(svg.namespaceURI, "path");
      path.setAttribute("class", `dot-${kind}`);
      path.setAttribute("d", Array.from({ length: count }, (_, i) => `M${4 + 6 * (i % 25)},${4 + 6 * Math.floor(i / 25)}h0`).join(""));
      svg.append(path);
    }
    return svg;
  }
  function showMarks() {
    const front = byId("settings");
    for (const row of all("tr[data-i]")) {
      const one = byNumber.get(Number(row.dataset.i)), out = one && failing(one).length > 0, radio = row.querySelector("input");
      row.classList.toggle("taken", one !== undefined && one === chosen);
      row.classList.toggle("faded", Boolean(out));
      if (radio) { radio.checked = one === chosen; }
      if (one && front && front.contains(row)) { row.querySelector(".fits").textContent = out ? "✗ no: " + failing(one).map(nameOf).join(", ") : "✓ yes"; }
    }
    for (const point of all(".pt[data-i]")) {
      const one = byNumber.get(Number(point.dataset.i));
      point.classList.toggle("out", one !== undefined && failing(one).length > 0);
    }
    for (const ring of all(".own.ring")) {
      const point = chosen === null ? null : ring.parentElement.querySelector(`.pt[data-i="${chosen.i}"]`);
      ring.setAttribute("visibility", point && !DATA.options.some(([, i]) => i === chosen.i) ? "visible" : "hidden");
      if (point) { ring.setAttribute("transform", point.getAttribute("transform").replace(/ scale.*/, "")); }
    }
  }
  function curve(name, points) {
    const at = document.querySelector(`[data-curve="${name}"]`);
    if (!at) { return; }
    const [left, right, low, top] = at.dataset.box.split(",").map(Number), farthest = Number(at.dataset.farthest);
    const across = (x) => (left + Math.min(x / farthest, 1) * (right - left)).toFixed(2), up = (y) => (low + (Math.max(y, 0.5) - 0.5) / 0.5 * (top - low)).toFixed(2);
    at.setAttribute("d", points.map(([x, y], i) => (i ? `V${up(y)}H${across(x)}` : `M${across(x)},${up(y)}`)).join(""));
  }
  function showChosen() {
    const fails = chosen === null ? asked() : failing(chosen);
    text("s-fails", chosen === null ? "No setting meets all of your limits: loosen one of them." : fails.length ? `This setting does not meet: ${fails.map(inWords).join(" ")} Choose another setting, or loosen the limit.` : "");
    list("s-limits", asked().length ? asked().map(inWords) : ["None."]);
    if (byId("download")) {
      byId("download").disabled = chosen === null || fails.length > 0 || unreadable.size > 0;
      text("why-not", chosen === null ? "No setting meets all of your limits (steps 1 to 3)." : fails.length ? "This setting misses one of your limits (step 4)."
        : unreadable.size ? "A limit cannot be read (steps 1 to 3)." : "");
    }
    for (const at of all(".of-chosen")) { at.hidden = chosen === null; }
    text("s-what", "You choose");
    if (chosen === null) { text("toml", ""); text("s-label", "Nothing."); text("s-goes", ""); text("s-name", ""); return; }
    text("s-name", optionNames.get(chosen.i) || ""); text("s-label", chosen.label); text("s-goes", chosen.goes_out); text("s-cost", chosen.cost); text("s-derived", chosen.derived);
    text("s-promise", chosen.promise_told); text("s-crowd", chosen.crowd); text("worst-hit", chosen.worst_hit);
    list("s-exchange", chosen.exchange); list("s-steps", chosen.steps);
    curve("guess", chosen.curve.map(([at, , guess]) => [at, guess]));
    curve("sure", higher(chosen.agreement));
    text("toml", request());
    all("#people tbody tr").forEach((row, i) => {
      const told = chosen.profiles[i];
      row.classList.toggle("differs", told[0] !== told[1]);
      [...row.querySelectorAll("td")].forEach((cell, j) => { cell.textContent = told[j]; });
    });
    all("#groups tbody tr").forEach((row, i) => {
      const group = chosen.groups[i], cells = [...row.querySelectorAll("td:not(.bars)")], bar = row.querySelector(".bar");
      group.told.forEach((told, j) => { cells[j].textContent = told; });
      if (bar) {
        bar.replaceChildren(...group.drawn.map((at, j) => {
          const dot = document.createElement("i");
          dot.className = j ? "then" : "today"; dot.style.left = `${100 * at}%`; dot.hidden = at === null;
          return dot;
        }));
      }
    });
  }
  // A step begins at its distance, and its share holds from there on.
  const higher = (steps) => steps.map(([at, share], i) => [at, i ? steps[i - 1][1] : share]);

  // ---- the request --------------------------------------------------------------------------------------
  // What JSON writes of a text TOML reads, but for DEL; halves of a character are none.
  const quoted = (words) => JSON.stringify(words.toWellFormed ? words.toWellFormed() : words.replace(/[\ud800-\udfff]/g, "")).replaceAll("\u007f", "\\u007f");
  const wordsOf = (id) => byId(id).value.normalize("NFC").replace(/[\s\p{Z}]+/gu, " ").trim();
  function request() {
    const own = [["asked_by", "asked-by"], ["asked_on", "asked-on"], ["why", "asked-why"]]
      .map(([name, id]) => [name, wordsOf(id)]).filter(([, value]) => value);
    const lines = own.map(([name, value]) => `${name} = ${quoted(value)}`);
    if (asked().length) { lines.push(`limits = [${asked().map((limit) => quoted(inWords(limit))).join(", ")}]`); }
    const left = chosen.toml.split("\n").filter((line) => !/^# (Say who asks|asked_by = |asked_on = |why = )/.test(line));
    const place = left.findIndex((line) => !line.startsWith("#"));
    return [...left.slice(0, place), ...lines, ...left.slice(place)].join("\n");
  }
  // On paper there are no fields.
  function showAsked() {
    const [by, on, why] = ["asked-by", "asked-on", "asked-why"].map((id) => (byId(id) ? wordsOf(id) : ""));
    text("asked-said", by && why ? `Asked by ${by} on ${on}: ${why}` : "Asked by: ____________________  on: ____________  why: ________________________________");
  }
  function missing() {
    // As the package's checks: accents that stand alone are marks, and what cannot be printed is no word.
    const by = byId("asked-by"), name = wordsOf("asked-by"), why = wordsOf("asked-why"), odd = why.match(/\p{C}/u), found = [];
    for (const id of ["asked-by", "asked-on", "asked-why"]) { byId(id).setAttribute("aria-invalid", "false"); }
    if (!name || !/^[\p{L}\p{N}\u0300-\u034e\u0350-\u036f _'-]+$/u.test(name) || name.split(" ").length > 6 || name.length > 60) { found.push([by, name ? `“${name}” is no plain name: use letters, digits, spaces, _, - and ', at most six words.` : "Say who asks."]); }
    if (!/^\d{4}-\d\d-\d\d$/.test(byId("asked-on").value)) { found.push([byId("asked-on"), "Say when: a day, and a year of four digits."]); }
    if (!why) { found.push([byId("asked-why"), "Say why: the data holder decides by it."]); }
    if (odd || [...why].length > 500) { found.push([byId("asked-why"), odd ? `In “why” there is a character that cannot be printed (U+${odd[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}): take it away.` : "“Why” is longer than 500 characters."]); }
    return found;
  }
  function download() {
    const found = missing();
    text("incomplete", found.map(([, words]) => words).join(" "));
    for (const [field] of found) { field.setAttribute("aria-invalid", "true"); }
    if (found.length) { found[0][0].focus(); return; }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([request()], { type: "application/toml" }));
    link.download = "request.toml";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // ---- the address: what was chosen stays in it, so that reloading and sharing keep it --------------------
  let began = "", step = "";
  const state = () => {
    const kept = new URLSearchParams();
    for (const one of fields) { kept.set(one.metric, limits[one.metric] ? String(valueOf(limits[one.metric])) : ""); }
    return kept;
  };
  function remember() {
    const now = state(), before = new URLSearchParams(began), kept = new URLSearchParams();
    if (picked !== null) { kept.set("setting", picked.name); }
    for (const [name, value] of now) { if (before.get(name) !== value) { kept.set(name, value); } }
    const words = kept.toString();
    const hash = words ? `#${step}?${words}` : step ? `#${step}` : "";
    if (location.hash !== hash) { history.replaceState(null, "", hash || location.pathname + location.search); }
  }
  function recall() {
    const [place, words] = location.hash.slice(1).split("?");
    step = STEPS.includes(place) || byId(place) ? place : "";
    const kept = new URLSearchParams(words || "");
    for (const one of fields) {
      if (!kept.has(one.metric)) { continue; }
      const value = kept.get(one.metric) === "" ? null : Number(kept.get(one.metric));
      if (value === null || (Number.isFinite(value) && (one.low === null || (value >= one.low && value <= one.high)))) { setLimit(one, value); }
    }
    picked = settings.find((one) => one.name === kept.get("setting")) || null;
    byId("from-address").hidden = picked === null && state().toString() === began;
  }

  // ---- what moves ---------------------------------------------------------------------------------------
  function update() {
    const fitting = settings.filter((one) => !failing(one).length);
    const equals = rule.equals(fitting);
    advised = equals.length ? equals[0] : null;
    chosen = picked !== null ? picked : advised;
    for (const at of all(".limits-said")) { at.hidden = state().toString() !== began; }
    showVerdict(fitting); showWhy(equals.length, fitting.length); showOwn(); showTags(); showMarks(); showChosen(); showAsked(); remember();
  }
  function take(number) { picked = byNumber.get(Number(number)) || null; update(); }
  function begin() {
    known = new Map(); limits = {}; picked = null;
    for (const one of DATA.asked.filter(rule.controlled)) {
      const before = limits[one.metric]; // asked for twice: the stricter counts
      if (!before || rule.stricter(one, before)) { limits[one.metric] = one; }
    }
    began = state().toString();
  }
  function show(name) {
    for (const one of ["chart", "table"]) {
      const here = one === name, tab = byId(`tab-${one}`);
      tab.setAttribute("aria-selected", String(here)); tab.tabIndex = here ? 0 : -1;
      byId(`as-${one}`).style.display = here ? "" : "none";
    }
  }
  function listen() {
    for (const one of fields) {
      one.field.addEventListener("input", () => {
        const value = typed(one);
        const bad = Number.isNaN(value) || (value !== null && one.low !== null && (value < one.low || value > one.high));
        if (bad) { unreadable.set(one, one.field.value); } else { unreadable.delete(one); setLimit(one, value); picked = null; }
        tellUnreadable(); update();
      });
    }
    for (const id of ["reset", "forget"]) { byId(id).addEventListener("click", () => { begin(); byId("from-address").hidden = true; showLimits(); update(); }); }
    for (const name of ["option", "best", "setting"]) {
      for (const at of all(`input[name=${name}]`)) { at.addEventListener("change", () => { if (at.value) { take(at.value); } }); }
    }
    for (const point of all(".pt[data-i]")) { point.addEventListener("click", () => { if (byNumber.has(Number(point.dataset.i))) { take(point.dataset.i); } }); }
    for (const id of ["asked-by", "asked-on", "asked-why"]) { if (byId(id)) { byId(id).addEventListener("input", () => { text("incomplete", ""); showAsked(); if (chosen) { text("toml", request()); } }); } }
    if (byId("download")) { byId("download").addEventListener("click", download); }
    for (const form of all("form")) { form.addEventListener("submit", (event) => event.preventDefault()); }
    for (const name of ["chart", "table"]) {
      byId(`as-${name}`).setAttribute("role", "tabpanel"); byId(`as-${name}`).setAttribute("aria-labelledby", `tab-${name}`);
      byId(`tab-${name}`).addEventListener("click", () => show(name));
      byId(`tab-${name}`).addEventListener("keydown", (event) => {
        if (!["ArrowLeft", "ArrowRight"].includes(event.key)) { return; }
        const other = name === "chart" ? "table" : "chart";
        show(other); byId(`tab-${other}`).focus();
      });
    }
    window.addEventListener("hashchange", () => {
      const place = location.hash.slice(1).split("?");
      if (place.length > 1) { begin(); recall(); showLimits(); update(); scroll(); } else { step = place[0]; remember(); }
    });
    // On paper nobody can open what is folded.
    let folded = [];
    window.addEventListener("beforeprint", () => {
      folded = all("details:not(.folded, #every)").filter((one) => !one.open);
      folded.forEach((one) => { one.open = true; });
    });
    window.addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
  }
  const scroll = () => { if (step && byId(step)) { byId(step).scrollIntoView(); } };

  if (byId("asked-on")) { const now = new Date(); byId("asked-on").value = new Date(now - now.getTimezoneOffset() * 60000).toISOString().slice(0, 10); }
  text("fixed", fixed.length ? `Also asked for, and not to be changed here: ${fixed.map((limit) => limit.words).join("; ")}.` : "");
  document.querySelector(".pair").hidden = false;
  show("chart"); listen(); begin(); recall(); showLimits(); update(); scroll();
  document.body.dataset.ready = "yes";
  window.targetdpPage = { chosen: () => (chosen === null ? null : chosen.name), fitting: () => settings.filter((one) => !failing(one).length).map((one) => one.name) };
})();
