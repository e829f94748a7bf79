// What JupyterLab and ipywidgets leave out: the colours of C++ in %%cuda cells, names and values of sliders and the
// names of choices for those who hear them; pictures for a dark theme. Plain JavaScript, loaded as JupyterLab loads any
// extension; no build.

(() => {
  const CPP = 'text/x-c++src';

  // Black on white becomes #eee on JupyterLab's #111; blue stays blue.
  const DARK = `[data-jp-theme-light='false'] .jp-needs-light-background { filter: invert(0.933) hue-rotate(180deg) }`;

  function colour(model) {
    if (model.type !== 'code') return;
    let other = model.mimeType;
    const check = () => {
      const cuda = model.sharedModel.getSource().startsWith('%%cuda');
      if (model.mimeType !== CPP) other = model.mimeType; // the notebook sets it again when its kernel starts
      const wanted = cuda ? CPP : other;
      if (model.mimeType !== wanted) model.mimeType = wanted;
    };
    model.contentChanged.connect(check);
    model.mimeTypeChanged.connect(check);
    check();
  }

  function colourCells(cells) {
    if (!cells) return; // not a notebook
    for (const cell of cells) colour(cell);
    cells.changed.connect((_, change) => {
      if (change.type === 'add' || change.type === 'set') change.newValues.forEach(colour);
    });
  }

  function say(element, name, text) {
    if (text && element.getAttribute(name) !== text) element.setAttribute(name, text);
  }

  function nameOf(part) {
    const widget = part.closest(':has(> .widget-label)');
    const label = widget.querySelector('.widget-label');
    return label?.textContent.trim() || part.title || widget.title || label?.title; // the title is ipywidgets' tooltip
  }

  function nameWidgets() {
    for (const field of document.querySelectorAll('.widget-text input')) say(field, 'aria-label', nameOf(field));
    for (const handle of document.querySelectorAll('.widget-slider .noUi-handle')) {
      say(handle, 'aria-label', nameOf(handle));
      const value = handle.closest('.widget-slider').querySelector('.widget-readout');
      say(handle, 'aria-valuetext', value?.textContent); // by itself the index
    }
    for (const group of document.querySelectorAll('.widget-radio-box, .widget-toggle-buttons > :not(label)')) {
      say(group, 'role', group.matches('.widget-radio-box') ? 'radiogroup' : 'group');
      say(group, 'aria-label', nameOf(group));
    }
  }

  function activate(app) {
    document.head.append(Object.assign(document.createElement('style'), { textContent: DARK }));
    const seen = new WeakSet();
    app.shell.currentChanged.connect((_, { newValue: panel }) => {
      if (!panel?.context || seen.has(panel)) return;
      seen.add(panel);
      panel.context.ready.then(() => colourCells(panel.content.model?.cells));
    });
    const changes = { childList: true, subtree: true, attributeFilter: ['aria-valuetext'] };
    new MutationObserver(nameWidgets).observe(document.body, changes);
  }

  const plugin = { id: 'warplab-desk:plugin', autoStart: true, activate };
  (window._JUPYTERLAB ??= {})['warplab-desk'] = { init() {}, get: async () => () => plugin };
})();
