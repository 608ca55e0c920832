// A chart that changes in place, follows the slider's stops, and plays (play.js stands before).

function load(address) {
  const patience = {signal: AbortSignal.timeout(15000)};
  window.s11Plotly ??= fetch(new URL(address, document.baseURI), patience)
    .then((answer) => {
      if (!answer.ok) throw new Error(`plotly.js: ${answer.status}`);
      return answer.text();
    })
    .then((text) => new Promise((resolve, reject) => {
      // By way of a blob: a server may send scripts as plain text.
      const script = document.createElement('script');
      script.src = URL.createObjectURL(new Blob([text], {type: 'text/javascript'}));
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => reject(new Error('plotly.js does not run'));
      document.head.append(script);
    }));
  return window.s11Plotly;
}

// What a relayout says of the x axes: [low, high], "all" where they show everything again.
function zoomed(change) {
  const low = Object.keys(change).find((key) => /^xaxis\d*\.range\[0\]$/.test(key));
  if (low) return [change[low], change[low.replace('[0]', '[1]')]];
  const both = Object.keys(change).find((key) => /^xaxis\d*\.range$/.test(key));
  if (both) return change[both];
  return Object.keys(change).some((key) => /^xaxis\d*\.autorange$/.test(key)) ? 'all' : null;
}

// While the slider is held the axis stays as it was: what lies beyond is named at its end.
function onAxis(layout, range) {
  const [, end] = range;
  const annotations = layout.annotations.map((note) => note.xref === 'x' && note.x > end
    ? {...note, x: end, xanchor: 'right', xshift: -4, text: `${note.text} →`} : note);
  return {...layout, annotations, xaxis: {...layout.xaxis, range: [...range]}};
}

// Plotly keeps a zoom while the range that a figure asks for is the same; a stretched axis is
// still that of the same scenario, so let it take the new range for the one it knew.
function keepZoom(chart, layout) {
  const known = chart._fullLayout?._preGUI, range = layout.xaxis?.range;
  if (!known || !range || layout.uirevision !== chart.layout.uirevision) return;
  for (const end of [0, 1])
    if (`xaxis.range[${end}]` in known) known[`xaxis.range[${end}]`] = range[end];
}

// For another configuration plotly.js draws anew, twice; two such draws at once would begin each
// other again without end. So what differs waits for the draw before it.
function paint(chart, config, react) {
  const last = chart.s11Painting;
  if (last === undefined || (last.config === config && !last.waiting)) {
    chart.s11Painting = {config, waiting: false, done: react()};
    return;
  }
  const mine = {config, waiting: true};
  mine.done = last.done.catch(() => {}).then(() => {
    mine.waiting = false;
    return react();
  });
  chart.s11Painting = mine;
}

const PAUSE_MS = 250;  // several zooms in a row are one
const WIDE_PX = 760;

export default function ({data, parentElement, setStateValue, setTriggerValue}) {
  const root = parentElement.querySelector('.s11-live'), chart = root.querySelector('.s11-chart');
  const {spec, config, alt, script, tellsZoom} = data;
  const {layout: {meta}} = JSON.parse(spec);
  let gone = false, pause;
  function draw(Plotly, shown, holding = false) {
    const {data: traces, layout: asked} = JSON.parse(shown.spec);
    // A figure may say what to change in its layout where there is room for it.
    const wide = Boolean(asked.meta?.wide) && chart.clientWidth >= WIDE_PX;
    const same = chart.s11Drawn;
    if (same?.spec === shown.spec && same.wide === wide && same.holding === holding) return;
    let layout = wide ? {...asked, ...asked.meta.wide} : asked;
    const range = holding && same ? same.range : layout.xaxis?.range?.slice();
    if (holding && same && range) layout = onAxis(layout, range);
    keepZoom(chart, layout);
    chart.style.height = `${layout.height}px`;
    chart.setAttribute('aria-label', shown.alt);
    chart.s11Player ??= player(root, chart);
    chart.s11Player.reset(asked.meta?.plays_until);
    paint(chart, JSON.stringify(config), () =>
      Plotly.react(chart, traces, layout, {...config, responsive: true}));
    chart.s11Drawn = {spec: shown.spec, alt: shown.alt, wide, holding, range};
  }
  function turn() {
    const wide = chart.clientWidth >= WIDE_PX;
    if (meta?.wide && window.Plotly && wide !== chart.s11Drawn?.wide)
      draw(window.Plotly, chart.s11Drawn, chart.s11Drawn.holding);
  }
  function tell(change) {
    const range = zoomed(change);
    if (range === null) return;
    clearTimeout(pause);
    pause = setTimeout(() => { if (!gone) setTriggerValue('zoomed', range); }, PAUSE_MS);
  }
  function follow({detail: {scenario, stop, holding}}) {
    if (window.Plotly && scenario === meta?.scenario) draw(window.Plotly, stop, holding);
  }
  function redrawn() { chart.s11Player?.redrawn(); }
  load(script)
    .then((Plotly) => {
      if (gone) return;
      // The reader may be further along the slider than what the server answers.
      const live = window.s11Live;
      const ahead = live && live.scenario === meta?.scenario && live.stop.chunk !== meta.chunk_tokens;
      if (ahead) {
        draw(Plotly, live.stop, live.holding);
      } else {
        const holding = Boolean(live?.holding && live.scenario === meta?.scenario);
        draw(Plotly, {spec, alt}, holding);
        if (!holding) window.s11Live = null;  // the server has caught up
      }
      window.addEventListener('resize', turn);
      document.addEventListener('s11-stop', follow);
      chart.on('plotly_afterplot', redrawn);
      if (tellsZoom) chart.on('plotly_relayout', tell);
    })
    .catch(() => { if (!gone) setStateValue('failed', true); });
  return () => {
    gone = true;
    clearTimeout(pause);
    window.removeEventListener('resize', turn);
    document.removeEventListener('s11-stop', follow);
    chart.removeListener?.('plotly_relayout', tell);
    chart.removeListener?.('plotly_afterplot', redrawn);
  };
}
