// Figures or words as the server tells them, or as those of the slider's stop that is shown.

function element(name, className, text, more = {}) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  for (const [key, value] of Object.entries(more)) made.setAttribute(key, value);
  return made;
}

function card({label, value, delta, tone, description, about}) {
  const made = element('div', 'card', '', {
    'role': 'group', 'aria-label': label, 'data-testid': 'stMetric',
  });
  const name = element('div', 'label', '', {'data-testid': 'stMetricLabel'});
  name.append(element('span', '', label), element('button', 'about', '?', {
    'type': 'button', 'aria-label': `${label}: ${about}`, 'data-about': about,
  }));
  made.append(name, element('div', 'value', value, {'data-testid': 'stMetricValue'}));
  const change = element('div', 'change');
  if (delta) {
    const arrow = tone === 'off' ? '' : delta.startsWith('-') ? '↓ ' : '↑ ';
    change.append(element('span', `delta ${tone}`, arrow + delta, {
      'data-testid': 'stMetricDelta', 'title': delta,
    }));
  }
  if (description) change.append(element('span', 'description', description));
  made.append(change);
  return made;
}

function figures(headlines) {
  const cards = element('div', 'cards');
  cards.append(...headlines.map(card));
  return [cards];
}

function paragraphs({headline, sentence, warning, alike, trade_off: tradeOff}) {
  const first = element('p');
  first.append(element('strong', '', `${headline}.`), ` ${sentence}`);
  const made = [first];
  if (warning) made.push(element('p', 'warning', warning));
  if (alike) {
    const note = element(
      'p', 'small', `With this load ${alike} does just what the chapter's scheduler does; `);
    const link = element('a', '', 'Compare schedulers', {href: 'compare', target: '_self'});
    note.append(link, ' shows where they part.');
    made.push(note);
  }
  if (tradeOff) made.push(element('p', 'small', tradeOff));
  return made;
}

export default function ({data, parentElement}) {
  const root = parentElement.querySelector('.s11_texts');
  let shown = '';
  function show({headlines, words}) {
    const told = JSON.stringify(data.headlines ? headlines : words);
    if (told === shown) return;
    shown = told;
    root.replaceChildren(...(data.headlines ? figures(headlines) : paragraphs(words)));
  }
  function follow({detail: {scenario, stop}}) {
    if (scenario === data.scenario) show(stop);
  }
  const live = window.s11Live;
  const ahead = live?.scenario === data.scenario && live.stop.chunk !== data.chunk;
  show(ahead ? live.stop : data);
  document.addEventListener('s11-stop', follow);
  return () => document.removeEventListener('s11-stop', follow);
}
