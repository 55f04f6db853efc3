// The program of a run's page (train/page/run_page.h): draws the curves with dygraphs, and lets the
// reader choose axis, runs, theme and part. Text of runs is only ever set as text, never as markup.
'use strict';
(() => {
const root = document.documentElement;
const data = JSON.parse(document.getElementById('data').textContent);
const charts = [];
let axis = 'steps';
let whole = [0, 1];  // all of the horizontal axis
let part = null;     // what is shown of it
let drawing = false;
let logarithmic;     // the box that asks for such scales

function element(name, properties = {}, children = []) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// --- data -----------------------------------------------------------------------------------------

function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** Steps and values of a series: see curves_json in train/page/curves.h. */
function decoded(series) {
  const bytes = bytesOf(series.steps);
  const steps = new Float64Array(series.count);
  let step = 0;
  for (let i = 0, at = 0; i < series.count; ++i) {
    let shift = 1;
    for (; bytes[at] >= 0x80; ++at, shift *= 128) step += (bytes[at] - 0x80) * shift;
    step += bytes[at++] * shift;
    steps[i] = step;
  }
  return {steps, values: new Float32Array(bytesOf(series.values).buffer)};
}

/** Index of the element of the rising `list` that is nearest to `x`. */
function nearest(list, x) {
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < x) low = middle + 1; else high = middle;
  }
  return low > 0 && x - list[low - 1] < list[low] - x ? low - 1 : low;
}

for (const run of data.runs) {
  run.shown = true;
  run.wall = run.series.wall_s && decoded(run.series.wall_s);
}

/** Seconds of the run's wall time after a step, between the known ones in proportion. */
function secondsAt(run, step) {
  const {steps, values} = run.wall;
  const i = nearest(steps, step);
  const j = steps[i] < step ? i + 1 : i - 1;
  if (steps[i] === step || j < 0 || j >= steps.length) return values[i];
  return values[i] + (values[j] - values[i]) * (step - steps[i]) / (steps[j] - steps[i]);
}

const units = [[172800, 86400, 'days'], [7200, 3600, 'hours'], [120, 60, 'minutes'], [0, 1, 'seconds']];
const longest = Math.max(0, ...data.runs.map((run) => run.wall ? run.wall.values.at(-1) : 0));
const [, unitSeconds, unitName] = units.find(([from]) => longest >= from);
const axes = {
  steps: {title: 'Steps', of: (run, step) => step, there: () => true},
  time: {title: `Time, ${unitName}`, of: (run, step) => secondsAt(run, step) / unitSeconds,
         there: (run) => Boolean(run.wall)},
  tokens: {title: 'Tokens', of: (run, step) => step * run.tokens_per_step,
           there: (run) => run.tokens_per_step > 0},
};

// --- texts ----------------------------------------------------------------------------------------

function plain(value) {
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e15)) return value.toExponential(3);
  const digits = Math.abs(value) >= 1e3 ? 0 : Math.max(0, 4 - Math.floor(Math.log10(Math.abs(value) || 1)));
  return value.toLocaleString('en', {maximumFractionDigits: digits});
}

function valueText(chart, value) {
  if (chart.scale === 'percent') return `${(100 * value).toFixed(1)} %`;
  if (chart.scale === 'bytes') {
    const unit = value < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
    return `${(value / 1024 ** unit).toFixed(unit ? 1 : 0)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
  }
  return chart.unit ? `${plain(value)} ${chart.unit}` : plain(value);
}

/** Marks of an axis: short enough for its room. */
function markText(chart, value) {
  if (chart && chart.scale !== 'plain') return valueText(chart, value);
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(4)}G`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)}k`;
  return size !== 0 && size < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(5));
}

function lineName(line) {
  return data.runs.length > 1 ? `${line.run.name} ${line.label}` : line.label;
}

/** The values of a chart's lines nearest to a place of the horizontal axis, and what happened there. */
function readAt(chart, x) {
  const shown = chart.lines.filter((line) => line.run.shown && line.x.length);
  if (!shown.length) return {text: 'Nothing is shown.', step: 0};
  const first = shown.reduce((best, line) =>
    Math.abs(line.x[nearest(line.x, x)] - x) < Math.abs(best.x[nearest(best.x, x)] - x) ? line : best);
  const step = first.steps[nearest(first.x, x)];
  const values = shown.map((line) => {
    const i = nearest(line.x, x);
    const at = line.steps[i] === step ? '' : ` (step ${plain(line.steps[i])})`;
    return `${lineName(line)} ${valueText(chart, line.values[i])}${at}`;
  });
  const width = (chart.graph.xAxisRange()[1] - chart.graph.xAxisRange()[0]) / 150;
  const events = data.runs.filter((run) => run.shown).flatMap((run) => run.events.filter((event) =>
    Math.abs(axes[axis].of(run, event.step) - x) <= width));
  const told = events.slice(0, 3).map((event) => event.text ? `${event.kind}: ${event.text}` : event.kind);
  return {step, text: [`Step ${plain(step)}: ${values.join(', ')}`, ...told].join('; ')};
}

// --- charts ---------------------------------------------------------------------------------------

function colours() {
  const style = getComputedStyle(root);
  const of = (name) => style.getPropertyValue(name).trim();
  return {gridLineColor: of('--grid'), axisLineColor: of('--line'), event: of('--event'), bad: of('--bad')};
}

function place(chart) {
  for (const line of chart.lines) {
    line.x = Float64Array.from(line.steps, (step) => axes[axis].of(line.run, step));
  }
}

/** The rows that dygraphs takes: a place, and the value of each line there or nothing. */
function rowsOf(chart) {
  const rows = new Map();
  chart.lines.forEach((line, column) => line.x.forEach((x, i) => {
    let row = rows.get(x);
    if (!row) rows.set(x, row = [x, ...chart.lines.map(() => null)]);
    row[column + 1] = line.values[i];
  }));
  chart.rows = [...rows.values()].sort((a, b) => a[0] - b[0]);
  return chart.rows;
}

function drawEvents(context, area, graph) {
  const {event: ordinary, bad} = colours();
  context.save();
  let last = {};
  for (const run of data.runs) {
    if (!run.shown) continue;
    for (const event of run.events) {
      const good = ['checkpoint', 'resume', 'deal'].includes(event.kind);
      const x = Math.round(graph.toDomXCoord(axes[axis].of(run, event.step))) + .5;
      if (x < area.x || x > area.x + area.w || last[good] === x) continue;
      last[good] = x;
      context.strokeStyle = good ? ordinary : bad;
      context.setLineDash(event.kind === 'checkpoint' ? [1, 4] : good ? [4, 4] : [6, 2]);
      context.beginPath();
      context.moveTo(x, area.y);
      context.lineTo(x, area.y + area.h);
      context.stroke();
    }
  }
  context.restore();
}

/** Shows the same part of the horizontal axis in all charts. */
function show(range, but) {
  part = range;
  drawing = true;
  for (const chart of charts) {
    if (chart !== but) chart.graph.updateOptions({dateWindow: part || whole, valueRange: null});
  }
  drawing = false;
}

function changed(chart, graph, initial) {
  if (initial || drawing) return;
  const [from, to] = graph.xAxisRange();
  const [oldFrom, oldTo] = part || whole;
  if (from !== oldFrom || to !== oldTo) show([from, to], chart);
}

function zoom(factor, about) {
  const [from, to] = part || whole;
  const middle = about ?? (from + to) / 2;
  const range = [Math.max(whole[0], middle - (middle - from) * factor),
                 Math.min(whole[1], middle + (to - middle) * factor)];
  if (range[1] - range[0] > (whole[1] - whole[0]) * 1e-7) {
    show(range[0] === whole[0] && range[1] === whole[1] ? null : range);
  }
}

function pan(share) {
  const [from, to] = part || whole;
  const by = Math.max(whole[0] - from, Math.min(whole[1] - to, (to - from) * share));
  if (by !== 0) show([from + by, to + by]);
}

function tell(chart, x) {
  for (const each of charts) {
    const {text, step} = readAt(each, x);
    each.output.textContent = text;
    if (each !== chart) continue;
    each.plot.setAttribute('aria-valuenow', step);
    each.plot.setAttribute('aria-valuetext', text);
  }
}

function visibleRows(chart) {
  const [from, to] = part || whole;
  const first = chart.rows.findIndex((row) => row[0] >= from);
  const last = chart.rows.findLastIndex((row) => row[0] <= to);
  return [Math.max(0, first), Math.max(0, last)];
}

function pressed(chart, key) {
  const [first, last] = visibleRows(chart);
  const jump = Math.max(1, Math.round((last - first) / 10));
  const moves = {ArrowLeft: -1, ArrowRight: 1, PageDown: -jump, PageUp: jump, Home: -Infinity, End: Infinity};
  if (key in moves) {
    chart.row = Math.max(first, Math.min(last, (chart.row ?? (moves[key] < 0 ? last + 1 : first - 1)) + moves[key]));
    chart.graph.setSelection(chart.row);
    tell(chart, chart.rows[chart.row][0]);
    return true;
  }
  const about = chart.row === undefined ? undefined : chart.rows[chart.row][0];
  if (key === '+' || key === '=') zoom(.5, about);
  else if (key === '-') zoom(2, about);
  else if (key === '0' || key === 'Escape') show(null);
  else return false;
  return true;
}

function keysOf(chart) {
  return element('div', {className: 'keys'}, chart.lines.map((line) => {
    const mark = element('i', {className: line.pattern ? 'dashed' : ''});
    mark.style.borderTopColor = line.colour;
    return element('span', {}, [mark, lineName(line)]);
  }));
}

function lineStyle(line) {
  return {
    color: line.colour,
    drawPoints: line.sparse || line.steps.length === 1,
    pointSize: 3,
    strokePattern: line.pattern,
  };
}

/** A chart's second line is broken, and so are the lines of runs that share an earlier one's colour. */
function patternOf(run, number) {
  if (number > 0) return [6, 4];
  return data.runs.indexOf(run) >= data.colours.length ? [2, 3] : null;
}

function addChart(kind) {
  const lines = kind.lines.flatMap((line, number) => data.runs.filter((run) => run.series[line.member])
    .map((run) => ({...line, run, ...decoded(run.series[line.member]), pattern: patternOf(run, number),
                    colour: data.runs.length > 1 ? run.colour : data.colours[number % data.colours.length]})));
  const chart = {...kind, lines};
  place(chart);
  const [low, high] = lines.reduce(([a, b], line) =>
    line.values.reduce(([c, d], value) => [Math.min(c, value), Math.max(d, value)], [a, b]), [Infinity, -Infinity]);
  const label = `${kind.title}: from ${valueText(kind, low)} to ${valueText(kind, high)}`;
  chart.plot = element('div', {className: 'chart', tabIndex: 0});
  for (const [name, value] of Object.entries({
    'role': 'slider', 'aria-label': label, 'aria-valuemin': Math.min(...lines.map((line) => line.steps[0])),
    'aria-valuemax': Math.max(...lines.map((line) => line.steps.at(-1))),
    'aria-valuenow': lines[0].steps.at(-1), 'aria-valuetext': label})) {
    chart.plot.setAttribute(name, value);
  }
  chart.output = element('output', {className: 'value'});
  chart.output.setAttribute('aria-live', 'off');
  document.getElementById('charts').append(element('figure', {}, [
    element('figcaption', {}, [
      element('h3', {textContent: kind.unit ? `${kind.title}, ${kind.unit}` : kind.title}), keysOf(chart)]),
    chart.output, chart.plot]));
  charts.push(chart);
}

function draw(chart) {
  const {gridLineColor, axisLineColor} = colours();
  chart.graph = new Dygraph(chart.plot, rowsOf(chart), {
    labels: ['x', ...chart.lines.map((line, number) => `line ${number}`)],
    series: Object.fromEntries(chart.lines.map((line, number) => [`line ${number}`, lineStyle(line)])),
    axes: {
      x: {axisLabelFormatter: (value) => markText(null, value), pixelsPerLabel: 70},
      y: {axisLabelFormatter: (value) => markText(chart, value), axisLabelWidth: 62},
    },
    connectSeparatedPoints: true, legend: 'never', strokeWidth: 1.5, yRangePad: 8,
    gridLineColor, axisLineColor, dateWindow: whole, underlayCallback: drawEvents,
    interactionModel: {...Dygraph.defaultInteractionModel, dblclick: () => show(null)},
    highlightCallback: (event, x) => tell(chart, x),
    drawCallback: (graph, initial) => changed(chart, graph, initial),
  });
  chart.plot.addEventListener('keydown', (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && pressed(chart, event.key)) event.preventDefault();
  });
}

function measure() {
  const ends = charts.flatMap((chart) => chart.lines.flatMap((line) => [line.x[0], line.x.at(-1)]));
  whole = [Math.min(...ends), Math.max(...ends)];
  // Room for the marks of the first and last values.
  const room = (whole[1] - whole[0]) / 100 || .5;
  whole = [whole[0] - room, whole[1] + room];
}

// --- controls -------------------------------------------------------------------------------------

function chooseAxis(name) {
  axis = name;
  charts.forEach(place);
  measure();
  part = null;
  drawing = true;
  for (const chart of charts) chart.graph.updateOptions({file: rowsOf(chart), dateWindow: whole});
  drawing = false;
}

function labelled(input, text) {
  return element('label', {}, [input, ` ${text}`]);
}

function group(title, children) {
  return element('fieldset', {}, [element('legend', {textContent: title}), ...children]);
}

function addControls() {
  const controls = document.getElementById('controls');
  const possible = Object.keys(axes).filter((name) => data.runs.every(axes[name].there));
  controls.append(group('Over', possible.map((name) => labelled(
    element('input', {type: 'radio', name: 'axis', value: name, checked: name === axis, onchange: () => chooseAxis(name)}),
    axes[name].title))));
  if (data.runs.length > 1) {
    controls.append(group('Runs', data.runs.map((run) => labelled(
      element('input', {type: 'checkbox', name: 'run', checked: true, onchange: ({target}) => {
        run.shown = target.checked;
        for (const {graph, lines} of charts) lines.forEach((line, i) => line.run === run && graph.setVisibility(i, run.shown));
      }}), run.name))));
  }
  logarithmic = element('input', {type: 'checkbox', onchange: ({target}) => {
    for (const {graph} of charts) graph.updateOptions({logscale: target.checked});
  }});
  controls.append(labelled(logarithmic, 'Logarithmic values'));
  const buttons = {'Zoom in': () => zoom(.5), 'Zoom out': () => zoom(2), 'Earlier': () => pan(-.5),
                   'Later': () => pan(.5), 'All': () => show(null)};
  controls.append(group('Part', Object.entries(buttons).map(([text, onclick]) =>
    element('button', {type: 'button', textContent: text, onclick}))));
  controls.append(element('small', {textContent:
    'Drag to zoom, shift and drag to move, double click for all. Keys on a chart: arrows, + - 0.'}));
  controls.hidden = false;
}

// --- theme and printing ---------------------------------------------------------------------------

const prefersDark = matchMedia('(prefers-color-scheme: dark)');
const button = document.getElementById('theme');

function isDark() {
  return root.dataset.theme ? root.dataset.theme === 'dark' : prefersDark.matches;
}

function recolour() {
  button.textContent = isDark() ? 'Light theme' : 'Dark theme';
  const {gridLineColor, axisLineColor} = colours();
  for (const {graph} of charts) graph.updateOptions({gridLineColor, axisLineColor});
}

button.onclick = () => {
  root.dataset.theme = isDark() ? 'light' : 'dark';
  recolour();
};
prefersDark.addEventListener('change', recolour);
let screenTheme;
addEventListener('beforeprint', () => {
  screenTheme = root.dataset.theme;
  root.dataset.theme = 'light';
  recolour();
});
addEventListener('afterprint', () => {
  if (screenTheme) root.dataset.theme = screenTheme; else delete root.dataset.theme;
  recolour();
});

// --- a page that is loaded again and again --------------------------------------------------------

/** What the reader of a served page has chosen outlives its loads, of which each has newer numbers. */
function keepView() {
  const kept = {axis, part, theme: root.dataset.theme, hidden: data.runs.filter((run) => !run.shown).map((run) => run.name),
                logarithmic: logarithmic.checked, top: scrollY};
  sessionStorage.setItem('view', JSON.stringify(kept));
}

function restoreView() {
  const kept = JSON.parse(sessionStorage.getItem('view') ?? 'null');
  if (!kept) return;
  if (kept.theme) root.dataset.theme = kept.theme;
  const radio = document.querySelector(`input[name=axis][value="${kept.axis}"]`);
  if (radio) radio.click();
  if (kept.logarithmic) logarithmic.click();
  data.runs.forEach((run, number) => {
    if (kept.hidden.includes(run.name)) document.querySelectorAll('input[name=run]')[number]?.click();
  });
  if (kept.part && kept.axis === axis) show(kept.part);
  scrollTo(0, kept.top);
}

try {
  if (typeof Dygraph !== 'undefined' && data.charts.length) {
    data.charts.forEach(addChart);
    measure();
    charts.forEach(draw);
    addControls();
  }
  button.hidden = false;
  if (charts.length && location.protocol === 'http:') {
    restoreView();
    addEventListener('pagehide', keepView);
  }
  recolour();
} catch (error) {
  document.getElementById('problem').textContent = `The curves cannot be drawn: ${error.message}`;
  throw error;
}
})();
