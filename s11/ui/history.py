"""Back and Forward, from page to page: each leads to the whole link that was left.

At a page switch Streamlit 1.67 first takes the parameters out of the address of the page that is
left, as a step of the browser's history, and adds the new page's address as another: Back then
leads to a page without its settings. Coming back, its server drops each parameter whose name the
page that is left has too (both have a GPU, say).
"""

from __future__ import annotations

import streamlit as st

_SCRIPT = """<script>
if (!window.s11History) {
  window.s11History = true;
  const MOST_TIMES = 5;
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  const at = (address) => new URL(address, location.href);
  let whole = null;  // this page's address, before it lost parameters
  let asked = null;  // where Back or Forward led, until somebody does something
  let waiting = false, times = 0;

  const loses = (address) => asked !== null && asked.pathname === at(address).pathname
    && [...asked.searchParams.keys()].some((name) => !at(address).searchParams.has(name));

  // From scene to scene of the tour is a step; from one setting of a page to the next is none.
  const scene = (address) => at(address).searchParams.get('scene');
  const turns = (address) => at(address).pathname.endsWith('/learn') && scene(address)
    && scene(address) !== scene(location.href);

  // When the server is done it has forgotten the other page's names; one that was still busy with
  // that page takes a parameter out once more.
  function askAgain(app) {
    if (app.dataset.testScriptState !== 'notRunning')
      return setTimeout(() => askAgain(app), 50);
    waiting = false;
    if (asked === null) return;
    times += 1;
    replace({}, '', asked);
    window.dispatchEvent(new PopStateEvent('popstate', {state: {s11: 'again'}}));
  }
  function change(address) {
    whole = null;
    replace({}, '', address);
    if (!loses(address) || waiting || times === MOST_TIMES) return;
    waiting = true;
    setTimeout(() => askAgain(document.querySelector('[data-testid=stApp]')), 50);
  }

  history.pushState = (state, title, address) => {
    if (at(address).pathname === location.pathname && !turns(address)) {
      const before = location.href;
      change(address);
      whole = before;
      return;
    }
    // Nobody asked for it: the server was still busy with the page that Back led away from.
    if (asked !== null) return change(address);
    if (whole !== null && at(address).pathname !== location.pathname) replace({}, '', whole);
    whole = null;
    push(state, title, address);
  };
  history.replaceState = (state, title, address) => change(address);
  window.addEventListener('popstate', (event) => {
    whole = null;
    if (event.state?.s11 === 'again') return;
    asked = at(location.href);
    times = 0;
  }, true);
  for (const doing of ['pointerdown', 'keydown', 'click'])
    window.addEventListener(doing, () => { asked = null; }, true);
}
</script>"""


def keep_history() -> None:
    """Lay the script that mends the browser's history; to be called once a run, in app.py."""
    st.html(_SCRIPT, unsafe_allow_javascript=True)
