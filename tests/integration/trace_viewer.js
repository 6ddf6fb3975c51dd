// Replacements for the old browser interfaces that the viewer of chrome://tracing uses: custom elements v0
// (document.registerElement), shadow DOM v0, and HTML imports.
(function () {
  const prototypes = {};
  const create = document.createElement.bind(document);
  const importNode = document.importNode.bind(document);

  function upgrade(element) {
    const prototype = prototypes[element.getAttribute('is') || element.localName];
    if (prototype && !element.upgraded) {
      element.upgraded = true;
      Object.setPrototypeOf(element, prototype);
      if (element.createdCallback) element.createdCallback();
    }
    return element;
  }

  function upgradeAll(node) {
    if (node.nodeType === Node.ELEMENT_NODE) {
      upgrade(node);
      if (node.upgraded && node.isConnected && !node.attachedOnce && node.attachedCallback) {
        node.attachedOnce = true;
        node.attachedCallback();
      }
    }
    for (const child of [...node.childNodes]) upgradeAll(child);
  }

  document.createElement = function (name, customName) {
    const element = create(name);
    if (customName) element.setAttribute('is', customName);
    return upgrade(element);
  };
  document.importNode = function (node, deep) {
    const copy = importNode(node, deep);
    upgradeAll(copy);
    return copy;
  };
  document.registerElement = function (name, options) {
    prototypes[name] = options.prototype;
    const make = () => document.createElement(options.extends || name, options.extends && name);
    const constructor = function () { return make(); };
    constructor.prototype = options.prototype;
    document.querySelectorAll(name).forEach(upgrade);
    return constructor;
  };
  new MutationObserver((changes) => {
    for (const change of changes) change.addedNodes.forEach(upgradeAll);
  }).observe(document, {childList: true, subtree: true});

  Object.defineProperty(document, '_currentScript', {get: () => document.currentScript || {ownerDocument: document}});
  Element.prototype.createShadowRoot = function () { return this; };
  window.wrap = window.unwrap = (node) => node;
  window.CustomElements = {hasNative: false, ready: true, takeRecords() {}, upgrade() {}, upgradeAll() {}};
})();

// Opens and shows a trace, like the Load button of chrome://tracing.
window.openTrace = function (text) {
  const tracks = document.createElement('track-view-container');
  tracks.id = 'track_view_container';
  const view = document.createElement('tr-ui-timeline-view');
  view.track_view_container = tracks;
  Polymer.dom(view).appendChild(tracks);
  view.id = 'view';
  view.globalMode = true;
  Polymer.dom(document.body).appendChild(view);
  const model = new tr.Model();
  new tr.importer.Import(model).importTraces([text]);
  view.model = model;
  window.model = model;
  window.view = view;
};

// Returns the warnings, flows and processes of the trace in the viewer; times are in µs from the first event.
window.summary = function () {
  const micros = (ms) => Math.round(ms * 1000);
  const flows = model.flowEvents.map((flow) => ({
    title: flow.title,
    from: flow.startSlice && flow.startSlice.title,
    to: flow.endSlice && flow.endSlice.title,
    start: micros(flow.start),
    end: micros(flow.start + flow.duration),
  }));
  const processes = model.getAllProcesses().map((process) => ({
    name: process.name,
    lanes: Object.values(process.threads).map((thread) => ({
      lane: thread.tid,
      slices: thread.sliceGroup.slices.map((slice) => [slice.title, micros(slice.start), micros(slice.duration), slice.args]),
    })),
    counters: Object.values(process.counters).map((counter) => ({
      name: counter.name,
      series: counter.series.map((series) => [
        series.name,
        series.samples.map((sample) => [micros(sample.timestamp), sample.value]),
      ]),
    })),
  }));
  return {warnings: model.importWarnings.map((warning) => warning.message), flows, processes};
};

// Returns the number of colours in the tracks.
window.colours = function () {
  const seen = new Set();
  for (const canvas of document.querySelectorAll('canvas')) {
    if (!canvas.width || !canvas.height) continue;
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    new Uint32Array(pixels.buffer).forEach((pixel) => seen.add(pixel));
  }
  return seen.size;
};
