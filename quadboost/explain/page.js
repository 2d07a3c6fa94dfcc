"use strict";
(function () {
  const model = quadboostModel, page = PAGE, SVG = "http://www.w3.org/2000/svg";
  const at = (id) => document.getElementById(id);
  document.documentElement.classList.add("scripted");

  // The table of right and wrong labels, for any border.
  const confusion = at("confusion");
  if (confusion) {
    const counts = JSON.parse(confusion.dataset.counts);
    const show = (id, count, total) => {
      at(id).textContent = count.toLocaleString("en");
      at(id + "-share").textContent = total ? ((100 * count) / total).toFixed(1) + " %" : "-";
    };
    at("slide").addEventListener("input", (event) => {
      const i = Number(event.target.value);
      at("border").textContent = counts.at[i].toPrecision(3);
      show("fp", counts.false[i], counts.first);
      show("tn", counts.first - counts.false[i], counts.first);
      show("tp", counts.found[i], counts.second);
      show("fn", counts.second - counts.found[i], counts.second);
    });
  }

  // The form. A row is an array of values in the order of the features.
  const fields = Array.from(document.querySelectorAll("[data-feature]"));
  if (!fields.length) return;

  // Where the terms cut each feature.
  const cuts = {};
  for (const term of model.terms) {
    if (term.cuts) cuts[term.feature] = (cuts[term.feature] || []).concat(term.cuts);
    else term.features.forEach((feature, node) => {
      if (feature >= 0 && !term.isLevel[node]) (cuts[feature] = cuts[feature] || []).push(term.thresholds[node]);
    });
  }
  for (const feature in cuts) cuts[feature] = Array.from(new Set(cuts[feature])).filter(Number.isFinite).sort((a, b) => a - b);

  function valueOf(field) {
    const feature = Number(field.dataset.feature), text = field.value.trim();
    if (text === "") return null;
    const levels = model.levels[feature];
    if (field.tagName === "SELECT") return text === "-1" ? "\u0000 never seen" : levels[Number(text)];
    if (levels) return levels.includes(text) ? text : levels.includes(Number(text)) ? Number(text) : text;
    const value = Number(text);
    if (Number.isNaN(value)) throw new Error(page.names[feature] + ": " + text + " is not a number");
    return value;
  }

  function rowOfForm() {
    const row = model.features.map(() => null);
    let problem = "";
    for (const field of fields) {
      let isWrong = false;
      try {
        row[Number(field.dataset.feature)] = valueOf(field);
      } catch (error) {
        isWrong = true;
        problem = error.message;
      }
      field.setAttribute("aria-invalid", String(isWrong));
    }
    at("problem").textContent = problem;
    return problem ? null : row;
  }

  function textOf(feature, value) {
    if (value === null) return "missing";
    if (value === "\u0000 never seen") return "never seen";
    const text = typeof value === "number" ? String(Number(value.toPrecision(7))) : String(value);
    return text.length > 40 ? text.slice(0, 39) + "…" : text;
  }

  // Three decimals, or as many digits as a number far from 1 needs.
  const short = (value) => {
    const size = Math.abs(value);
    return value !== 0 && (size < 0.01 || size >= 1e6) ? String(Number(value.toPrecision(4))) : value.toFixed(3);
  };

  const labelOf = (scores) => (scores.length === 1 ? (scores[0] > 0 ? 1 : 0) : scores.indexOf(Math.max(...scores)));

  function outcomeOf(row, scores) {
    if (!model.classes) {
      const targets = [].concat(model.predict(row));
      return "prediction " + targets.map((one) => Number(one.toPrecision(6))).join(", ");
    }
    const label = labelOf(scores), p = model.probabilities(row)[label];
    return page.classes[label] + " · probability " + (100 * p).toFixed(1) + " %";
  }

  // A tree by the features that it asks for.
  function treeName(t) {
    const asked = Array.from(new Set(model.terms[t].features.filter((feature) => feature >= 0)));
    const names = asked.slice(0, 3).map((feature) => page.names[feature] || "another").join(", ");
    return model.terms[t].name + ": " + (names.length > 40 ? names.slice(0, 39) + "…" : names) + (asked.length > 3 ? ", ..." : "");
  }

  function make(name, attributes, text) {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  // From the base to the score, the largest contributions first.
  function drawWaterfall(row, scores) {
    const k = scores.length === 1 ? 0 : labelOf(scores);
    let steps = model.contributions(row).map((term, t) => {
      const feature = model.terms[t].feature;
      const name = feature === undefined ? treeName(t) : page.names[feature] + " = " + textOf(feature, row[feature]);
      return { name: name, value: term.values[k] - page.means[t][k] };
    });
    steps.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    if (steps.length > 15) {
      const rest = steps.slice(14);
      steps = steps.slice(0, 14).concat([{ name: rest.length + " others", value: rest.reduce((sum, step) => sum + step.value, 0) }]);
    }
    let sum = page.base[k], low = Math.min(sum, 0), high = Math.max(sum, 0);
    for (const step of steps) {
      step.from = sum;
      sum += step.value;
      low = Math.min(low, sum);
      high = Math.max(high, sum);
    }
    const room = 0.13 * (high - low) || 1;
    low -= room;
    high += room;
    const width = Math.min(Math.max(at("waterfall").clientWidth, 320), 860), left = Math.min(0.42 * width, 270);
    const right = width - 70, most = Math.floor((left - 10) / 6.8), line = 22, height = line * (steps.length + 2) + 8;
    const x = (value) => left + 24 + ((right - left - 24) * (value - low)) / (high - low);
    const picture = make("svg", { viewBox: "0 0 " + width + " " + height, width: width, height: height, role: "img",
      "aria-label": "how the score comes about" });
    const label = (text, y) => picture.append(make("text", { class: "end strong", x: left - 10, y: y + 15 },
      text.length > most ? text.slice(0, most - 1) + "…" : text));
    const rule = (value, kind) => picture.append(make("path", { class: kind, d: "M" + x(value) + " 2V" + (height - 4) }));
    rule(page.base[k], "grid");
    if (model.classes && scores.length === 1) rule(0, "special");
    label(page.start, 0);
    picture.append(make("text", { class: "strong", x: x(page.base[k]) + 5, y: 15 }, short(page.base[k])));
    steps.forEach((step, i) => {
      const y = line * (i + 1), a = x(step.from), b = x(step.from + step.value);
      label(step.name, y);
      picture.append(make("rect", { class: step.value > 0 ? "up" : "down", x: Math.min(a, b), y: y + 3,
        width: Math.max(Math.abs(b - a), 0.5), height: line - 6 }));
      picture.append(make("text", { class: step.value > 0 ? "strong" : "end strong", x: step.value > 0 ? b + 5 : b - 5, y: y + 15 },
        (step.value > 0 ? "+" : "") + short(step.value)));
    });
    const y = line * (steps.length + 1);
    label("this row", y);
    picture.append(make("path", { class: "curve", d: "M" + x(sum) + " " + y + "v" + line }));
    picture.append(make("text", { class: "strong", x: x(sum) + 6, y: y + 15 }, short(scores[k])));
    at("waterfall").replaceChildren(picture);
    at("unit").textContent = "From the " + page.start + " to this row: " + page.units[k] + ".";
  }

  // Values to try of a feature: one in each bin between the cuts of the terms that look at it.
  function choicesOf(feature) {
    if (model.levels[feature]) return model.levels[feature].map((value) => ({ value: value, text: textOf(feature, value) }));
    const cutsHere = cuts[feature] || [];
    return cutsHere.map((cut) => ({ value: cut, text: "at most " + textOf(feature, cut), isMost: true })).concat(
      cutsHere.map((cut, i) => ({ value: i + 1 < cutsHere.length ? cutsHere[i + 1] : cut + Math.max(1e-6 * Math.abs(cut), 1e-6),
        text: "above " + textOf(feature, cut), isMost: false })));
  }

  function suits(choice, now) {
    if (choice.isMost === undefined || now === null) return choice.value !== now;
    return choice.isMost ? choice.value < now : choice.value > now;
  }

  // The nearest value of one feature that changes the label; of targets, how far one feature can move them.
  function tellChanges(row, scores) {
    const before = labelOf(scores), found = [], lines = at("changes");
    for (const feature of page.features) {
      const now = row[feature];
      let best = null, most = null, least = null;
      for (const choice of choicesOf(feature)) {
        if (!suits(choice, now)) continue;
        const other = row.slice();
        other[feature] = choice.value;
        const result = model.score(other);
        if (model.classes && labelOf(result) !== before) {
          const far = typeof choice.value === "number" && typeof now === "number" ? Math.abs(choice.value - now) : 0;
          if (!best || far < best.far) best = { choice: choice, far: far, label: labelOf(result) };
        }
        if (!most || result[0] > most.score) most = { choice: choice, score: result[0], row: other };
        if (!least || result[0] < least.score) least = { choice: choice, score: result[0], row: other };
      }
      const name = page.names[feature] + " (now " + textOf(feature, now) + ")";
      if (model.classes) {
        if (best) found.push([name, best.choice.text + ": " + page.classes[best.label]]);
      } else if (most && least) {
        const target = (extreme) => [].concat(model.predict(extreme.row)).map((one) => Number(one.toPrecision(5))).join(", ");
        found.push([name, least.choice.text + ": " + target(least) + "; " + most.choice.text + ": " + target(most)]);
      }
    }
    if (!found.length) found.push(["no single feature", "changes the label of this row"]);
    lines.replaceChildren(...found.map((pair) => {
      const line = document.createElement("tr"), name = document.createElement("th"), value = document.createElement("td");
      name.textContent = pair[0];
      name.scope = "row";
      value.textContent = pair[1];
      line.append(name, value);
      return line;
    }));
  }

  function update() {
    const row = rowOfForm();
    if (!row) return;
    const scores = model.score(row), outcome = at("outcome");
    outcome.textContent = outcomeOf(row, scores) + " · score " + scores.map(short).join(", ");
    outcome.dataset.scores = JSON.stringify(scores);
    drawWaterfall(row, scores);
    tellChanges(row, scores);
  }

  function fill(row) {
    for (const field of fields) {
      const feature = Number(field.dataset.feature), value = row[feature];
      if (field.tagName === "SELECT") field.value = String(value);
      else if (model.levels[feature]) {
        const known = value === "" ? "" : value === -1 ? "\u2014 never seen" : String(model.levels[feature][value]);
        field.value = known;
      } else field.value = value;
    }
    update();
  }

  document.querySelectorAll("[data-row]").forEach((button) => {
    button.addEventListener("click", () => fill(page.rows[Number(button.dataset.row)]));
  });
  at("form").addEventListener("input", update);
  window.addEventListener("resize", update);
  at("form").addEventListener("submit", (event) => event.preventDefault());
  if (page.rows.length) fill(page.rows[0]);
  else update();
})();
