"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const canvas = byId("canvas"), labels = byId("labels"), tip = byId("tip");
  let LEFT = Math.min(180, window.innerWidth / 5);
  const BAR = 18, GAP = 8, GROUP = 22, PLOT = 36;
  // The second line above the rows has the names of the markers.
  const TOP = data.markers.length ? 44 : 24;

  // What a slice's numbers are.
  const [START, END, DEPTH, KIND, NAME, DETAILS, CATEGORY] = [0, 1, 2, 3, 4, 5, 6];

  // The slices of a row, by depth: those of one depth do not overlap, and are in order.
  let height = 0, group = -1, last = 1;
  const groups = [];
  // A counter is a row with values instead of slices.
  for (const { name, values } of data.counters) {
    const sizes = values.map((value) => value[1]);
    const most = sizes.reduce((one, other) => Math.max(one, other), 0);
    const least = sizes.reduce((one, other) => Math.min(one, other), 0);
    data.rows.push({ group: data.groups.length, name, slices: [], values, least, most });
    last = Math.max(last, values[values.length - 1][0]);
  }
  if (data.counters.length) data.groups.push("Counters");
  data.markers.sort((one, other) => one[1] - other[1]);
  for (const [, ns] of data.markers) last = Math.max(last, ns);
  for (const [index, row] of data.rows.entries()) {
    row.index = index;
    if (row.group !== group) {
      group = row.group;
      groups.push({ top: height, name: data.groups[group] });
      height += GROUP;
    }
    row.depths = [];
    for (const slice of row.slices) {
      (row.depths[slice[DEPTH]] ||= []).push(slice);
      last = Math.max(last, slice[END]);
    }
    row.top = height;
    row.height = row.values ? PLOT : Math.max(1, row.depths.length) * BAR + GAP;
    height += row.height;
  }

  const label = (text, top, tall, style) => {
    const element = document.createElement("div");
    element.textContent = text;
    element.title = text;
    element.className = style;
    element.dataset.top = top;
    element.style.height = tall + "px";
    labels.append(element);
    return element;
  };
  for (const each of groups) label(each.name, each.top, GROUP, "group");
  data.rows.forEach((row, index) => {
    const element = label(row.name, row.top, row.height, "row");
    // A stream's or thread's rows have one number.
    const stream = row.first ?? index;
    if (row.values) return;
    Object.assign(element, { tabIndex: 0, role: "button" });
    element.addEventListener("click", () => show({ stream, row }));
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      element.click();
    });
  });
  // The browser scrolls to a label that has the focus.
  labels.addEventListener("scroll", () => {
    const by = labels.scrollTop;
    labels.scrollTop = 0;
    if (by) scroll(by);
  });
  labels.style.top = TOP + "px";
  labels.style.width = byId("split").style.left = LEFT + "px";
  // The end of a stream's handle tells it from others: the names are shown whole, if they are not long.
  const widest = [...labels.children].reduce((most, one) => Math.max(most, one.scrollWidth), 0);
  if (widest > LEFT) {
    LEFT = Math.min(widest, Math.max(LEFT, Math.min(240, window.innerWidth * 0.3)));
    labels.style.width = byId("split").style.left = LEFT + "px";
  }
  byId("missing").textContent = data.missing;

  // What is shown: from `from` to `to` in nanoseconds, scrolled down by `down` pixels.
  const margin = last * 0.01;
  let [from, to] = data.first ?? [-margin, last + margin], down = 0;
  let wide = 0, tall = 0;

  // One unit for all times of a view; each is exact to a nanosecond.
  let unit = null;
  const UNITS = [[1e9, "s", 9], [1e6, "ms", 6], [1e3, "µs", 3], [1, "ns", 0]];
  const time = (ns) => (ns / unit[0]).toFixed(unit[2]) + " " + unit[1];
  const setUnit = () => {
    const before = unit;
    unit = UNITS.find(([size]) => size * 2 <= to - from) ?? UNITS[3];
    if (before && unit !== before) showPanel();
  };
  const x = (ns) => LEFT + (ns - from) / (to - from) * (wide - LEFT);
  const at = (pixel) => from + (pixel - LEFT) / (wide - LEFT) * (to - from);
  // The margins are not a part of the trace. Whole nanoseconds, as shown: so the lengths are right.
  const inTrace = (ns) => Math.round(Math.max(0, Math.min(ns, last)));
  // What is between two pixels, in nanoseconds.
  const between = (pixels) => pixels.map(at).map(inTrace).sort((one, other) => one - other);

  const hue = new Map();
  const colour = (slice, light) => {
    // Colours of one lightness: a name can be read on each.
    if (slice[KIND] === 3) return `oklch(${light} 0.19 25)`;
    if (slice[KIND] === 2) return `oklch(${light} 0.02 255)`;
    const text = slice[CATEGORY] ?? slice[NAME];
    let value = hue.get(text);
    if (value === undefined) {
      value = 7;
      for (const unit of data.texts[text]) {
        value = (value * 31 + unit.codePointAt(0)) % 3600;
      }
      // Names that differ only in the last letters have near values: the golden angle parts them.
      value = value * 137.508 % 360;
      hue.set(text, value);
    }
    return `oklch(${light} ${slice[KIND] === 0 ? 0.13 : 0.08} ${value})`;
  };

  // The index of the value that a counter has at a time; -1 before the first.
  const valueAt = (values, ns) => {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle][0] <= ns) low = middle + 1; else high = middle;
    }
    return low - 1;
  };

  // A counter: a step for each value. Of many in one pixel, the greatest is drawn. Its scale are the
  // greatest and the least value, at their heights.
  const plot = (pen, row, top, fill, soft) => {
    const { values, least, most } = row;
    const y = (value) => top + PLOT - 4 - (value - least) / (most - least || 1) * (PLOT - 8);
    pen.fillStyle = fill;
    const zero = y(0);
    const box = (left, right, value) => pen.fillRect(left, Math.min(y(value), zero), right - left,
      Math.max(1, Math.abs(zero - y(value))));
    let drawnTo = LEFT, highest = 0;
    for (let i = Math.max(0, valueAt(values, from)); i < values.length && values[i][0] <= to; i++) {
      const value = values[i][1];
      if (Math.abs(value) > Math.abs(highest)) highest = value;
      const end = i + 1 < values.length ? values[i + 1][0] : last;
      const right = Math.min(Math.round(x(end)), wide);
      const left = Math.max(drawnTo, Math.min(Math.round(x(values[i][0])), right - 1));
      if (right <= drawnTo) continue;
      box(left, left + 1, highest);
      box(left + 1, right, value);
      [drawnTo, highest] = [right, 0];
    }
    pen.fillStyle = soft;
    for (const value of new Set([most, least])) {
      // Not cut off by the rows above and below.
      const middle = Math.max(top + 8, Math.min(y(value), top + PLOT - 8));
      pen.fillText(String(Number(value.toPrecision(6))), LEFT + 3, middle);
    }
  };

  // The slices at which an arrow begins or ends.
  const joined = new Set(data.arrows.flatMap(([fromRow, source, , toRow, target]) =>
    [data.rows[fromRow].slices[source], data.rows[toRow].slices[target]]));

  // The first of a list that ends after a time.
  const firstAfter = (list, ns) => {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle][END] < ns) low = middle + 1; else high = middle;
    }
    return low;
  };

  const ticks = () => {
    const wanted = (to - from) / Math.max(1, (wide - LEFT) / 120);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= wanted);
    const all = [];
    for (let one = Math.ceil(from / step) * step; one <= to; one += step) all.push(one);
    return [all, step];
  };
  const tickText = (ns, step) => {
    const digits = Math.max(0, Math.ceil(-Math.log10(step / unit[0]) - 1e-9));
    return (ns / unit[0]).toFixed(digits) + " " + unit[1];
  };

  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(draw);
  };

  // Where a range is being chosen, in pixels.
  let choice = null;

  // What the panel is about: a slice or a marker with its row, a stream, or nothing but the range.
  let about = null;
  // The range that was chosen, in nanoseconds.
  let chosen = null;
  // For each text, whether it has what is searched; null without a search.
  let matches = null, found = [], foundAt = -1;
  const isFound = (slice) => matches[slice[NAME]] || matches[slice[DETAILS]];
  const foundMarkers = new Set();

  const panel = byId("panel");
  const element = (name, text) => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };
  const details = (slice) => data.texts[slice[DETAILS]].replace(
    /^(duration on the device|placement error|begun at|ended at): ([0-9.]+) µs$/gm,
    (_, what, us) => `${what}: ${time(us * 1e3)}`);
  const describe = (slice) => `${data.texts[slice[NAME]]}\nfrom ${time(slice[START])} to `
    + `${time(slice[END])}: ${time(slice[END] - slice[START])}\n${details(slice)}`;

  // Of the slices that lie in the range, the part in the range counts.
  const statistics = (rows, low, high) => {
    const names = new Map(), streams = new Map();
    let cut = 0;
    for (const [index, row] of rows) {
      const stream = row.first ?? index;
      if (!streams.has(stream)) streams.set(stream, []);
      row.depths.forEach((list, depth) => {
        for (let i = firstAfter(list, low); i < list.length && list[i][START] <= high; i++) {
          const part = [Math.max(low, list[i][START]), Math.min(high, list[i][END])];
          if (part[0] > list[i][START] || part[1] < list[i][END]) cut++;
          if (depth === 0) streams.get(stream).push(part);
          const name = list[i][NAME];
          if (!names.has(name)) names.set(name, []);
          names.get(name).push(part[1] - part[0]);
        }
      });
    }
    const busy = [...streams].map(([stream, parts]) => {
      let sum = 0, until = low;
      for (const [start, end] of parts.sort((one, other) => one[0] - other[0])) {
        sum += Math.max(0, end - Math.max(start, until));
        until = Math.max(until, end);
      }
      return [data.rows[stream], sum / (high - low || 1), parts.length];
    });
    const table = [...names].map(([name, lengths]) => {
      lengths.sort((one, other) => one - other);
      const count = lengths.length, total = lengths.reduce((one, other) => one + other, 0);
      const p99 = lengths[Math.ceil(count * 0.99) - 1];
      return [data.texts[name], count, total, total / count, p99];
    });
    return [busy, table.sort((one, other) => other[2] - one[2]), cut];
  };

  // The slices that the host began in a slice, or the one in which it was begun, with their arrows.
  const linked = ({ slice, row }) => {
    const all = [];
    for (const arrow of data.launches) {
      const [host, outer, begun, gpu, index] = arrow;
      const from = { row: data.rows[host], slice: data.rows[host].slices[outer] };
      const to = { row: data.rows[gpu], slice: data.rows[gpu].slices[index] };
      const other = to.slice === slice ? from
        : row === from.row && slice[START] <= begun && begun < slice[END] ? to : null;
      if (other) all.push({ ...other, arrow });
    }
    return all;
  };

  let links = [];
  const NAMES = 200;
  function showPanel() {
    const body = byId("about");
    // The button that was pressed goes, the focus stays.
    if (body.contains(document.activeElement)) body.focus({ preventScroll: true });
    body.replaceChildren();
    panel.hidden = !about && !chosen;
    byId("zoom").hidden = !chosen;
    links = about?.slice ? linked(about).slice(0, NAMES) : [];
    redraw();
    if (panel.hidden) return;
    if (about?.slice) {
      body.append(element("pre", `${describe(about.slice)}in ${about.row.name}`));
      const what = about.slice[KIND] === 0 ? "begun in" : "began";
      for (const other of links) {
        const button = element("button",
          `${what} ${data.texts[other.slice[NAME]]} (${other.row.name})`);
        button.addEventListener("click", () => goTo(other));
        body.append(button, " ");
      }
      return;
    }
    if (about?.marker) {
      const [, ns, name] = about.marker;
      body.append(element("pre", `${name}\nat ${time(ns)}\nin ${about.row.name}`));
      return;
    }
    const [low, high] = chosen ?? [0, last];
    const indexed = [...data.rows.entries()].filter(([index, row]) => !row.values
      && (!about || (row.first ?? index) === about.stream));
    const [busy, table, cut] = statistics(indexed, low, high);
    body.append(element("p", `${chosen ? "range" : "all"}: ${time(low)} to ${time(high)}: `
      + time(high - low)));
    // A program may have had many threads that did nothing in the range.
    const idle = ([row, , parts]) => !about && !parts && data.groups[row.group] === "Host";
    const threads = busy.filter(idle).length;
    const shares = busy.filter((one) => !idle(one)).map(([row, share]) =>
      `${row.name}: busy ${(share * 100).toFixed(1)} %`);
    if (threads) shares.push(`${threads} idle thread${threads > 1 ? "s" : ""}`);
    body.append(element("p", shares.join(" · ")));
    if (cut) {
      body.append(element("p", `of ${cut} span${cut > 1 ? "s" : ""} only the part in the range counts`));
    }
    const shown = document.createElement("table");
    const line = (kind, cells) => {
      const row = document.createElement("tr");
      row.append(...cells.map((cell) => element(kind, cell)));
      shown.append(row);
    };
    line("th", ["name", "count", "total", "mean", "p99"]);
    for (const [name, count, ...times] of table.slice(0, NAMES)) {
      line("td", [name, count, ...times.map(time)]);
    }
    body.append(shown);
    if (table.length > NAMES) body.append(element("p", `and ${table.length - NAMES} more names`));
  }

  // Shows an item in the panel, and scrolls to it if the panel or the window hides it.
  const show = (item) => {
    about = item;
    showPanel();
    if (!item) return;
    const top = item.row.top + (item.slice ? item.slice[DEPTH] * BAR : 0);
    const room = canvas.clientHeight - TOP - BAR - GAP;
    if (top < down || top > down + room) down = top - Math.round(room / 2);
  };

  function draw() {
    waiting = false;
    setUnit();
    // The canvas is measured after this, which may add a line to the header.
    const [begin, end] = [from, to].map(inTrace);
    byId("range").textContent = `${time(begin)} to ${time(end)}: ${time(end - begin)}`;
    const ratio = window.devicePixelRatio || 1;
    wide = canvas.clientWidth;
    tall = canvas.clientHeight;
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(tall * ratio);
    const style = getComputedStyle(document.documentElement);
    const [paper, ink, soft, line, band, wait, mark, light] =
      ["--paper", "--ink", "--soft", "--line", "--band", "--wait", "--mark", "--light"]
        .map((name) => style.getPropertyValue(name).trim());
    down = Math.max(0, Math.min(down, height + TOP - tall + GAP));
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";

    // Writes as much of a text as there is room for.
    const write = (text, left, y, room) => {
      let low = 0, high = Math.min(text.length, Math.ceil(room));
      if (high === text.length && pen.measureText(text).width <= room) {
        pen.fillText(text, left, y);
        return;
      }
      while (low < high) {
        const part = (low + high + 1) >> 1;
        if (pen.measureText(text.slice(0, part) + "…").width <= room) low = part;
        else high = part - 1;
      }
      // Not half of a pair of surrogates.
      const part = text.slice(0, low).replace(/[\uD800-\uDBFF]$/, "");
      pen.fillText(part.trimEnd() + "…", left, y);
    };

    pen.fillStyle = band;
    for (const each of groups) pen.fillRect(LEFT, each.top + TOP - down, wide, GROUP);
    const [marks, step] = ticks();
    pen.strokeStyle = line;
    pen.beginPath();
    for (const ns of marks) {
      pen.moveTo(Math.round(x(ns)) + 0.5, 0);
      pen.lineTo(Math.round(x(ns)) + 0.5, tall);
    }
    pen.stroke();

    let slices = 0, rows = 0;
    for (const row of data.rows) {
      const top = row.top + TOP - down;
      if (top > tall || top + row.height < TOP) continue;
      rows++;
      pen.strokeStyle = line;
      pen.beginPath();
      pen.moveTo(LEFT, top + row.height + 0.5);
      pen.lineTo(wide, top + row.height + 0.5);
      pen.stroke();
      if (row.values) plot(pen, row, top, mark, soft);
      row.depths.forEach((list, depth) => {
        const y = top + GAP / 2 + depth * BAR;
        const first = firstAfter(list, from);
        // What is searched is drawn over the rest.
        for (const pass of matches ? [false, true] : [null]) {
          let drawnTo = -1;
          pen.globalAlpha = pass === false ? 0.25 : 1;
          for (let i = first; i < list.length && list[i][START] <= to; i++) {
            const slice = list[i];
            if (pass && !isFound(slice)) continue;
            const left = Math.max(x(slice[START]), LEFT);
            const right = Math.min(x(slice[END]), wide), width = Math.max(1, right - left);
            if (!pass) slices++;
            // Many in one pixel are drawn as one.
            if (right <= drawnTo) continue;
            drawnTo = left + width;
            pen.fillStyle = colour(slice, light);
            pen.fillRect(left, y, width, BAR - 2);
            if (width > 24) {
              pen.fillStyle = ink;
              write(data.texts[slice[NAME]], left + 4, y + (BAR - 2) / 2, width - 4);
            } else if (!pass && joined.has(slice)) {
              // Beside it, so that an arrow begins and ends at what can be read.
              const next = list[i + 1] ? Math.min(x(list[i + 1][START]), wide) : wide;
              const room = next - left - width - 6;
              pen.fillStyle = ink;
              if (room > 24) write(data.texts[slice[NAME]], left + width + 4, y + (BAR - 2) / 2, room);
            }
          }
        }
        pen.globalAlpha = 1;
      });
    }
    if (about?.slice) {
      const { slice, row } = about;
      const left = Math.max(x(slice[START]), LEFT) - 1, right = Math.min(x(slice[END]), wide) + 1;
      pen.strokeStyle = ink;
      pen.lineWidth = 2;
      const y = row.top + TOP - down + GAP / 2 + slice[DEPTH] * BAR;
      const width = Math.max(2, right - left);
      if (right >= LEFT && left <= wide) pen.strokeRect(left, y - 1, width, BAR);
      pen.lineWidth = 1;
    }

    pen.save();
    pen.beginPath();
    pen.rect(LEFT, TOP, wide - LEFT, tall - TOP);
    pen.clip();
    pen.strokeStyle = pen.fillStyle = wait;
    pen.lineWidth = 1.5;
    let arrows = 0;
    // The links of what is selected look like arrows, but are not dimmed by a search.
    const joins = [...data.arrows, ...links.map((link) => link.arrow)];
    for (const [index, [fromRow, source, fromTime, toRow, target]] of joins.entries()) {
      pen.globalAlpha = matches && index < data.arrows.length ? 0.25 : 1;
      const toTime = data.rows[toRow].slices[target][START];
      if (Math.max(fromTime, toTime) < from || Math.min(fromTime, toTime) > to) continue;
      arrows++;
      const [x0, x1] = [x(fromTime), x(toTime)];
      const middle = (row, slice) => data.rows[row].top + TOP - down + GAP / 2
        + data.rows[row].slices[slice][DEPTH] * BAR + (BAR - 2) / 2;
      const y1 = middle(toRow, target), begin = middle(fromRow, source);
      // It leaves along the slice's edge, not over its name or that of the next one.
      const y0 = begin + Math.sign(y1 - begin) * (BAR - 2) / 2;
      const bend = Math.max(14, Math.min(60, Math.abs(x1 - x0) / 2));
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.lineTo(x1 - 7, y1 - 4);
      pen.lineTo(x1 - 7, y1 + 4);
      pen.fill();
    }
    pen.restore();

    pen.clearRect(0, 0, wide, TOP);
    pen.fillStyle = pen.strokeStyle = mark;
    let markers = 0;
    // As for the slices: what is searched is drawn over the rest.
    for (const pass of matches ? [false, true] : [null]) {
      let drawnTo = LEFT - 1;
      pen.globalAlpha = pass === false ? 0.25 : 1;
      for (const marker of data.markers) {
        const [, ns] = marker, left = Math.round(x(ns));
        if (ns < from || ns > to) continue;
        if (pass !== null && pass !== foundMarkers.has(marker)) continue;
        markers++;
        const selected = marker === about?.marker;
        if (left <= drawnTo && !selected) continue;
        drawnTo = left;
        pen.fillRect(left - selected, 24, selected ? 3 : 1, TOP - 24);
        // Many lines would hide the slices.
        const opaque = pen.globalAlpha;
        if (!selected && !pass) pen.globalAlpha *= 0.35;
        pen.fillRect(left - selected, TOP, selected ? 3 : 1, tall);
        pen.globalAlpha = opaque;
      }
    }
    // Markers without room for a name between them have one text, behind the last.
    const signs = [];
    for (const marker of data.markers) {
      const [, ns, name] = marker, left = Math.round(x(ns));
      if (ns < from || ns > to) continue;
      let sign = signs[signs.length - 1];
      if (!sign || left - sign.last > 26) signs.push(sign = { first: left, names: [] });
      sign.last = left;
      sign.names.push(name);
      sign.found ||= foundMarkers.has(marker);
    }
    signs.forEach(({ last, names, found }, index) => {
      const room = (signs[index + 1]?.first ?? wide) - last - 10;
      pen.globalAlpha = matches && !found ? 0.25 : 1;
      if (room > 16) write(names.slice(0, room).join(" · "), last + 4, 34, room);
    });
    pen.globalAlpha = 1;

    const range = choice ? between(choice) : chosen;
    if (range && range[0] < to && range[1] > from) {
      const [left, right] = range.map((ns) => Math.max(LEFT, Math.min(x(ns), wide)));
      pen.globalAlpha = 0.15;
      pen.fillStyle = wait;
      pen.fillRect(left, TOP, right - left, tall);
      pen.globalAlpha = 1;
      // Its length, where it can be read.
      const text = time(range[1] - range[0]), length = pen.measureText(text).width;
      const textLeft = Math.min(left + 4, wide - length - 4);
      pen.fillStyle = paper;
      pen.fillRect(textLeft - 4, tall - 19, length + 8, 18);
      pen.fillStyle = wait;
      pen.fillText(text, textLeft, tall - 10);
    }

    pen.fillStyle = soft;
    for (const ns of marks) {
      const text = tickText(ns, step);
      if (x(ns) < LEFT || x(ns) + 3 + pen.measureText(text).width > wide) continue;
      pen.fillText(text, x(ns) + 3, 12);
    }
    for (const element of labels.children) {
      element.style.top = element.dataset.top - down + "px";
    }
    // For tests: what can be seen now.
    Object.assign(document.body.dataset, { rows, slices, arrows, markers, from, to });
  }

  const under = (pixelX, pixelY) => {
    if (pixelX < LEFT || pixelY < TOP) return null;
    const y = pixelY - TOP + down;
    const row = data.rows.find((one) => y >= one.top && y < one.top + one.height);
    const list = row && row.depths[Math.floor((y - row.top - GAP / 2) / BAR)];
    if (!list) return null;
    // Two pixels more, so that short ones can be met.
    const slack = 2 * (to - from) / (wide - LEFT);
    const slice = list[firstAfter(list, at(pixelX) - slack)];
    return slice && slice[START] <= at(pixelX) + slack ? { slice, row } : null;
  };

  // What was under the pointer is elsewhere after a change of the view.
  const change = () => { tip.style.display = "none"; redraw(); };
  const zoom = (factor, around) => {
    const least = 10;
    const span = Math.min(Math.max((to - from) * factor, least), (last + 2 * margin) * 4);
    const part = (around - from) / (to - from);
    from = around - span * part;
    to = from + span;
    change();
  };
  const move = (ns) => { from += ns; to += ns; change(); };
  const scroll = (pixels) => { down += pixels; change(); };
  const all = () => { from = -margin; to = last + margin; down = 0; change(); };
  // That of what is selected, if it is in view.
  const middle = () => {
    const [start, end] = about?.slice || about?.marker ? startAndEnd(about) : [from, to];
    const ns = (start + end) / 2;
    return from <= ns && ns <= to ? ns : (from + to) / 2;
  };

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const wheel = (event) => {
    event.preventDefault();
    const [pixel] = place(event);
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      move((event.deltaX || event.deltaY) / (wide - LEFT) * (to - from));
    } else {
      zoom(1.0015 ** event.deltaY, at(Math.max(pixel, LEFT)));
    }
  };
  for (const each of [canvas, labels]) each.addEventListener("wheel", wheel, { passive: false });

  let held = null, pressed = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = pressed = place(event);
    if (event.shiftKey) choice = [held[0], held[0]];
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    const [pixelX, pixelY] = place(event);
    if (choice) {
      const ends = between(choice);
      chosen = Math.abs(choice[1] - choice[0]) > 3 && ends[0] < ends[1] ? ends : null;
      about = null;
      showPanel();
    } else if (pressed && Math.hypot(pixelX - pressed[0], pixelY - pressed[1]) < 4) {
      show(under(pixelX, pixelY));
    }
    held = pressed = choice = null;
    change();
  });
  canvas.addEventListener("pointercancel", () => {
    held = pressed = choice = null;
    redraw();
  });
  canvas.addEventListener("pointermove", (event) => {
    const [pixelX, pixelY] = place(event);
    if (choice) {
      choice[1] = Math.max(LEFT, pixelX);
      redraw();
      return;
    }
    if (held) {
      down -= pixelY - held[1];
      move(-(pixelX - held[0]) / (wide - LEFT) * (to - from));
      held = [pixelX, pixelY];
    }
    const counter = pixelX >= LEFT && pixelY >= TOP && data.rows.find((one) => one.values
      && pixelY - TOP + down >= one.top && pixelY - TOP + down < one.top + one.height);
    const value = counter && counter.values[valueAt(counter.values, at(pixelX))];
    const slice = under(pixelX, pixelY)?.slice;
    // The names of markers that are near to each other are cut off.
    const marked = pixelY < 24 || pixelY >= TOP ? [] : data.markers.filter(([, ns]) =>
      ns >= from && x(ns) > pixelX - 40 && x(ns) < pixelX + 4);
    tip.textContent = value ? `${counter.name}: ${value[1]}\nsince ${time(value[0])}`
      : slice ? describe(slice)
        : marked.slice(0, 20).map(([, ns, name]) => `${name}\nat ${time(ns)}`).join("\n");
    tip.style.display = tip.textContent ? "block" : "none";
    if (!tip.textContent) return;
    const right = event.clientX + 14 + tip.offsetWidth > window.innerWidth;
    const low = event.clientY + 14 + tip.offsetHeight > window.innerHeight;
    tip.style.left = event.clientX + (right ? -14 - tip.offsetWidth : 14) + "px";
    tip.style.top = event.clientY + (low ? -14 - tip.offsetHeight : 14) + "px";
  });
  canvas.addEventListener("pointerleave", () => { tip.style.display = "none"; });
  canvas.addEventListener("dblclick", (event) => zoom(0.25, at(place(event)[0])));
  const zoomToRange = () => {
    if (!chosen) return;
    [from, to] = chosen;
    change();
  };

  const search = byId("search");
  const lower = [];
  // Not searched: what the page itself says of each span of the GPU, such as its "placement error".
  const OWN = /^duration on the device: .*\nplacement error: .*\nbegun by: .*\nbegun at: .*\nended at: .*\n$/m;
  const startAndEnd = ({ slice, marker }) => slice ? [slice[START], slice[END]]
    : [marker[1], marker[1]];
  const find = () => {
    const wanted = search.value.toLowerCase();
    matches = null;
    [found, foundAt] = [[], -1];
    foundMarkers.clear();
    if (wanted) {
      matches = data.texts.map((text, index) => (lower[index] ??= text.replace(OWN, "").toLowerCase())
        .includes(wanted));
      for (const row of data.rows) {
        for (const slice of row.slices) if (isFound(slice)) found.push({ slice, row });
      }
      for (const marker of data.markers) {
        if (!marker[2].toLowerCase().includes(wanted)) continue;
        foundMarkers.add(marker);
        found.push({ marker, row: data.rows[marker[0]] });
      }
      found.sort((one, other) => startAndEnd(one)[0] - startAndEnd(other)[0]);
    }
    byId("found").textContent = wanted ? `${found.length} found` : "";
    redraw();
  };
  const goToFound = (next) => {
    if (!found.length) return;
    foundAt = next < 0 ? found.length - 1 : next % found.length;
    byId("found").textContent = `${foundAt + 1} of ${found.length}`;
    goTo(found[foundAt]);
  };
  const goTo = (item) => {
    const [start, end] = startAndEnd(item), length = end - start;
    if (start < from || end > to || (item.slice && x(end) - x(start) < 8)) {
      const span = item.slice ? Math.max(10, length * 5) : to - from;
      from = start - (span - length) / 2;
      to = from + span;
    }
    show(item);
    change();
  };
  search.addEventListener("input", find);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") goToFound(foundAt + (event.shiftKey ? -1 : 1));
  });
  const clear = () => {
    about = chosen = null;
    search.value = "";
    search.blur();
    find();
    showPanel();
  };

  // The border of the labels can be moved.
  const split = byId("split");
  const setLeft = (pixels) => {
    LEFT = Math.max(40, Math.min(pixels, canvas.clientWidth - 80));
    labels.style.width = split.style.left = LEFT + "px";
    change();
  };
  let splitting = false;
  split.addEventListener("pointerdown", (event) => {
    splitting = true;
    if (event.isTrusted) split.setPointerCapture(event.pointerId);
  });
  split.addEventListener("pointermove", (event) => { if (splitting) setLeft(place(event)[0]); });
  for (const name of ["pointerup", "pointercancel"]) {
    split.addEventListener(name, () => { splitting = false; });
  }

  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { clear(); return; }
    if (event.target === search) return;
    const step = (to - from) / 5;
    const actions = {
      w: () => zoom(0.7, middle()), s: () => zoom(1 / 0.7, middle()),
      a: () => move(-step), d: () => move(step),
      ArrowLeft: () => move(-step), ArrowRight: () => move(step),
      ArrowUp: () => scroll(-60), ArrowDown: () => scroll(60),
      0: all, z: zoomToRange, "/": () => search.focus(),
    };
    const action = actions[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  byId("in").addEventListener("click", () => zoom(0.5, middle()));
  byId("out").addEventListener("click", () => zoom(2, middle()));
  byId("all").addEventListener("click", all);
  byId("zoom").addEventListener("click", zoomToRange);
  // The search goes on.
  byId("close").addEventListener("click", () => {
    about = chosen = null;
    showPanel();
  });
  // In a narrower window the border must not be beyond the edge.
  window.addEventListener("resize", () => setLeft(LEFT));
  // The canvas has the colours of the theme in which it was drawn.
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  draw();
})();
