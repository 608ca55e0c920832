// Holds the slider's stops, and tells which to show while the slider is moved.
//
// window.s11Live is the stop that the reader is at before the server knows of it:
// {scenario, stop, holding}; holding: the pointer is still down.

async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  const told = JSON.parse(await new Response(stream).text());
  return {...told, byChunk: new Map(told.stops.map((stop) => [String(stop.chunk), stop]))};
}

const KEY_MS = 500;  // a key's change of the slider follows it at once

export default function ({data, parentElement}) {
  const root = parentElement.querySelector('.s11_stops');
  // Outlives this call: new stops can come while the slider is held.
  const hand = root.s11Hand ??= {down: false, keyed: -Infinity};
  let gone = false;
  unpacked(data).then((told) => {
    if (gone) return;
    root.s11Held = told;
    root.dataset.scenario = told.scenario;  // ready
    const slider = document.querySelector(`.st-key-${told.slider} [aria-valuetext]`);
    if (hand.down && slider) reach(slider);
  }).catch(() => { root.s11Held = null; });  // then pictures come on release

  function ofSlider(target) {
    const held = root.s11Held;
    return Boolean(held && target.closest?.(`.st-key-${held.slider}`));
  }
  function tell(stop) {
    window.s11Live = {scenario: root.s11Held.scenario, stop, holding: hand.down};
    document.dispatchEvent(new CustomEvent('s11-stop', {detail: window.s11Live}));
  }
  function reach(slider) {
    const stop = root.s11Held.byChunk.get(slider.getAttribute('aria-valuetext'));
    if (!stop || !(hand.down || performance.now() - hand.keyed < KEY_MS)) window.s11Live = null;
    else if (window.s11Live?.stop !== stop || window.s11Live.holding !== hand.down) tell(stop);
  }
  const observer = new MutationObserver((changes) => {
    const last = changes.filter(({target}) => ofSlider(target)).at(-1);
    if (last) reach(last.target);
  });
  observer.observe(document.body, {
    subtree: true, attributes: true, attributeFilter: ['aria-valuetext'],
  });
  const listeners = {
    pointerdown(event) { hand.down = ofSlider(event.target); },
    pointerup() {
      if (!hand.down) return;
      hand.down = false;
      if (window.s11Live && root.s11Held) tell(window.s11Live.stop);
    },
    keydown(event) { if (ofSlider(event.target)) hand.keyed = performance.now(); },
  };
  listeners.pointercancel = listeners.pointerup;
  for (const [name, listener] of Object.entries(listeners))
    document.addEventListener(name, listener, true);
  return () => {
    gone = true;
    observer.disconnect();
    for (const [name, listener] of Object.entries(listeners))
      document.removeEventListener(name, listener, true);
  };
}
