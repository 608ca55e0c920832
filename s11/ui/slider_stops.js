// Holds the slider's stops, and tells which to show while the slider is moved.
//
// window.s11Live is the stop that the reader is at before the server knows of it:
// {scenario, stop, holding}; holding: the pointer is still down.

async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

const KEY_MS = 500;  // a key's change of the slider follows it at once

export default function ({data, parentElement}) {
  const root = parentElement.querySelector('.s11_stops');
  let gone = false, down = false, keyed = -Infinity;
  unpacked(data).then((told) => {
    if (gone) return;
    root.s11Held = {...told, byChunk: new Map(told.stops.map((stop) => [String(stop.chunk), stop]))};
    root.dataset.scenario = told.scenario;  // ready
  }).catch(() => { root.s11Held = null; });  // then pictures come on release

  function ofSlider(target) {
    const held = root.s11Held;
    return Boolean(held && target.closest?.(`.st-key-${held.slider}`));
  }
  function tell(stop) {
    const {scenario} = root.s11Held;
    window.s11Live = {scenario, stop, holding: down};
    document.dispatchEvent(new CustomEvent('s11-stop', {detail: window.s11Live}));
  }
  const observer = new MutationObserver((changes) => {
    const last = changes.filter(({target}) => ofSlider(target)).at(-1);
    if (!last) return;
    const text = last.target.getAttribute('aria-valuetext');
    const stop = root.s11Held.byChunk.get(text);
    if (!stop || !(down || performance.now() - keyed < KEY_MS)) {
      window.s11Live = null;
      return;
    }
    if (window.s11Live?.stop !== stop || window.s11Live.holding !== down) tell(stop);
  });
  observer.observe(document.body, {
    subtree: true, attributes: true, attributeFilter: ['aria-valuetext'],
  });
  function press(event) { down = ofSlider(event.target); }
  function release() {
    if (!down) return;
    down = false;
    if (window.s11Live && root.s11Held) tell(window.s11Live.stop);
  }
  function key(event) { if (ofSlider(event.target)) keyed = performance.now(); }
  const listeners = {
    pointerdown: press, pointerup: release, pointercancel: release, keydown: key,
  };
  for (const [name, listener] of Object.entries(listeners))
    document.addEventListener(name, listener, true);
  return () => {
    gone = true;
    observer.disconnect();
    for (const [name, listener] of Object.entries(listeners))
      document.removeEventListener(name, listener, true);
  };
}
