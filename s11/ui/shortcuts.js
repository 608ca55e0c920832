// Single-key shortcuts: the tour's arrows count every press, and all of them can be switched off.
//
// A button's shortcut asks the server to turn to the scene after the one that was drawn last: of
// three quick presses two are lost. Here each press goes on from the address, which is changed at
// once; the server then draws the last one. The tour's numbers go the same way, without a reload.

if (!window.s11Shortcuts) {
  window.s11Shortcuts = true;
  const OFF = 's11-shortcuts-off', CONTROLS = 'input, textarea, select, [contenteditable], '
    + '[role=slider], [role=spinbutton], [role=combobox], [role=listbox], [role=radiogroup], '
    + '[role=tablist], [role=toolbar], [role=menu], [role=dialog], [data-testid=stButtonGroup], '
    + '[data-testid=stDataFrame]';
  const root = document.documentElement;
  const kept = () => { try { return sessionStorage; } catch { return {}; } };
  const isOff = () => root.dataset.s11Shortcuts === 'off';
  root.dataset.s11Shortcuts = kept()[OFF] ? 'off' : 'on';

  const links = () => [...document.querySelectorAll('nav.tour a')];
  const scene = (address) => Number(new URL(address).searchParams.get('scene') ?? 1);

  function goTo(number) {
    const link = links()[number - 1];
    if (!link || number === scene(location.href)) return;
    history.pushState({}, '', link.href);
    window.dispatchEvent(new PopStateEvent('popstate', {state: {s11: 'again'}}));
  }
  function isPlain(event) {
    return !event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey;
  }

  // On the body: after a control that wants the key for itself, before Streamlit's shortcuts.
  document.body.addEventListener('keydown', (event) => {
    if (!isPlain(event) || event.target.closest?.('input, textarea, select, [contenteditable]'))
      return;
    const turn = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (isOff() && (turn || event.key.length === 1)) return event.stopPropagation();
    if (!turn || !links().length || event.defaultPrevented || event.target.closest(CONTROLS))
      return;
    event.stopPropagation();
    event.preventDefault();
    if (!event.repeat) goTo(scene(location.href) + turn);
  });

  window.addEventListener('click', (event) => {
    const target = event.target.closest?.('nav.tour a, .st-key-learn_next button, '
      + '.st-key-learn_previous button, [data-s11-shortcuts-to]');
    if (!target || !isPlain(event) || event.button) return;
    event.stopPropagation();
    event.preventDefault();
    if (target.dataset.s11ShortcutsTo) return switchTo(target);
    if (target.tagName === 'A') return goTo(scene(target.href));
    goTo(scene(location.href) + (target.closest('.st-key-learn_next') ? 1 : -1));
  }, true);

  function switchTo(button) {
    const to = root.dataset.s11Shortcuts = button.dataset.s11ShortcutsTo;
    if (to === 'off') kept()[OFF] = 'yes'; else delete kept()[OFF];
    for (const other of button.parentElement.querySelectorAll('button'))
      if (other !== button) other.focus();
  }
}
