// Plays a chart's timeline: what lies right of the playhead is clipped away, in every row.
//
// The picture itself is not touched: the camera saves all of it. Where the reader asked for less
// motion there is no animation, only steps.

const PLAY_MS = {least: 4000, most: 12000, ofStep: 400};
let clips = 0;

// Where the drawn steps end, and where all does: A, the pinned state, may take longer.
function stepEnds(chart, until) {
  const {x = [], width} = chart._fullData.find((t) => t.xaxis === 'x' && t.yaxis === 'y') ?? {};
  const ends = width ? Array.from(x, (left, at) => left + width[at]) : Array.from(x).slice(1);
  return {ends, edges: [0, ...ends.filter((end) => end < until), until]};
}

function player(root, chart) {
  const bar = root.querySelector('.s11-play');
  const head = document.createElementNS('http://www.w3.org/2000/svg', 'line');
  head.setAttribute('class', 's11-playhead');
  const [play, back, on, all] = bar.querySelectorAll('button');
  const told = bar.querySelector('.s11-told'), rect = root.querySelector('clipPath rect');
  const clip = root.querySelector('clipPath');
  clip.id = `s11-played-${clips += 1}`;
  const calm = window.matchMedia('(prefers-reduced-motion: reduce)');
  let at = null, until = 0, ends = [], edges = [], frame = null, before = 0;

  function parts() {
    const shapes = chart.layout.shapes ?? [];
    const drawn = [...chart.querySelectorAll('.layer-above .shape-group path')];
    return [...chart.querySelectorAll('.overplot'), ...drawn.filter((path) => {
      const shape = shapes[path.dataset.index];
      return shape?.xref === 'x' && shape.name !== 'stays';
    })];
  }
  function reveal() {
    const notes = chart.layout.annotations ?? [];
    for (const note of chart.querySelectorAll('.annotation')) {
      const from = /^from (.*)$/.exec(notes[note.dataset.index]?.name ?? '');
      note.style.display = at !== null && from && at < Number(from[1]) ? 'none' : '';
    }
  }
  function show() {
    const {xaxis} = chart._fullLayout, x = xaxis._offset + xaxis.l2p(at);
    const edge = Math.min(Math.max(x, xaxis._offset), xaxis._offset + xaxis._length);
    rect.setAttribute('width', edge);
    rect.setAttribute('height', chart.clientHeight);
    for (const part of parts()) part.style.clipPath = `url(#${clip.id})`;
    reveal();
    const {t: top, h: high} = chart._fullLayout._size;
    for (const [key, value] of Object.entries({x1: x, x2: x, y1: top, y2: top + high}))
      head.setAttribute(key, value);
    if (edge === x) chart.querySelectorAll('.main-svg')[1].append(head);
    else head.remove();  // the playhead is beyond what is zoomed on
    const {axis, step_count: many} = chart.layout.meta;
    // Of very many steps, each mark stands for a few.
    const ofMark = Math.ceil(many / Math.max(1, ends.length));
    const done = Math.min(many, ofMark * ends.filter((end) => end <= at).length);
    const steps = `${done.toLocaleString('en')} of ${many.toLocaleString('en')} steps done`;
    const time = `${Math.round(at).toLocaleString('en')} ms, `;
    told.textContent = axis === 'by time' ? time + steps : steps;
    say();
  }
  function whole() {
    stop();
    at = null;
    for (const part of parts()) part.style.clipPath = '';
    reveal();
    head.remove();
    told.textContent = '';
    say();
  }
  function stop() {
    cancelAnimationFrame(frame);
    frame = null;
  }
  function say() {
    play.textContent = frame !== null ? 'Pause' : at === null ? 'Play' : 'Resume';
    play.hidden = calm.matches;
    all.disabled = at === null;
    back.disabled = at === null;
    told.setAttribute('aria-live', frame === null ? 'polite' : 'off');
  }
  function move(now) {
    const lasts = Math.min(Math.max(edges.length * PLAY_MS.ofStep, PLAY_MS.least), PLAY_MS.most);
    at = Math.min(until, at + (until * (now - before)) / lasts);
    before = now;
    frame = at < until ? requestAnimationFrame(move) : null;
    if (frame === null) whole(); else show();
  }
  function begin() {
    if (at === null) {
      ({ends, edges} = stepEnds(chart, until));
      at = 0;
    }
  }
  play.onclick = () => {
    if (frame !== null) stop();
    else {
      begin();
      before = performance.now();
      frame = requestAnimationFrame(move);
    }
    show();
  };
  on.onclick = () => {
    stop();
    begin();
    const next = edges.find((edge) => edge > at * (1 + 1e-9) + 1e-9);
    if (next === undefined) return whole();
    at = next;
    show();
  };
  back.onclick = () => {
    stop();
    at = edges.filter((edge) => edge < at * (1 - 1e-9) - 1e-9).at(-1) ?? 0;
    show();
  };
  all.onclick = () => {
    whole();
    (play.hidden ? on : play).focus();
  };
  calm.addEventListener('change', say);
  return {
    // A new picture: it is shown whole.
    reset(end) {
      until = end ?? 0;
      bar.hidden = !end;
      if (at !== null) whole(); else say();
    },
    redrawn() { if (at !== null) show(); },
    gone() {
      stop();
      calm.removeEventListener('change', say);
    },
  };
}
