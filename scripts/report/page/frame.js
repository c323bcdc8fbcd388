// Shows the call path under the pointer, and the focused one.

function showLeftOut() {
    const text = source.left_out ? `${humanCount(source.left_out)} paths ` +
        (source.times ? `that took ${humanNs(source.least)} or less` :
            `with ${humanCount(source.least)} calls or less`) + ', and what ' +
        'is below them, are not in the picture; the table of functions has ' +
        'all.' : '';

    byId('left-out').textContent = text;
    byId('left-out').hidden = !text;
}

function frameFacts(path) {
    const { unit, label } = METRICS[state.metric];
    const format = human[unit];
    const list = element('dl', '', { class: 'facts' });
    const all = measured.total[0];
    const known = state.metric !== 'time' || path === 0 || view.isTimed(path);
    const error = (errors, at) => unit === 'ns' && errors && errors[at] ?
        ` \u00b1 ${humanNs(errors[at])}` : '';
    const timed = view.calls[path] - view.untimed[path];
    const total = shownOf(view, measured, measured.total, path);
    const self = shownOf(view, measured, measured.self, path);
    const below = limits => state.metric === 'time' && path ? limits[path] : 0;

    if (known || total > 0)
        fact(list, unit === 'ns' ? 'Total' : label,
            (below(view.totalBelow) ?
                boundedNs(total, view.totalBelow[path]) :
                `${format(total)}${error(view.totalError, path)} ` +
                `(${percent(total, all)})`),
            humanCount(total));
    if (before)
        fact(list, 'Before', `${format(before.total[path])} (` +
            `${noteOfChange(total, before.total[path],
                before.noise ? before.noise[path] : 0)})`);
    if (path === 0)
        return list;
    if (known)
        fact(list, 'Self', below(view.selfBelow) ?
            boundedNs(self, view.selfBelow[path]) :
            format(self) + error(view.selfError, path),
        humanCount(self));
    if (state.metric !== source.kind)
        fact(list, source.kind === 'samples' ? 'Samples' : 'Calls',
            callsText(view.calls[path],
                view.certainty ? view.certainty[path] : 0));
    if (unit === 'ns' && source.kind === 'calls' && known && timed > 0 &&
        !view.older[path])
        fact(list, 'Mean', boundedNs(
            shownOf(view, measured, view.total, path) / timed,
            view.totalBelow[path] / timed));
    if (unit === 'ns' && view.min && view.min[path] && view.max[path])
        fact(list, 'From \u2013 to', [boundedNs(view.min[path] - 1,
            view.minBelow[path]), boundedNs(view.max[path] - 1,
            view.maxBelow[path])].join(' \u2013 '));
    if (view.guessed && view.guessed[path])
        fact(list, 'Caller', view.guessed[path] < view.calls[path] ?
            `a guess in ${humanCount(view.guessed[path])} samples` : 'a guess');
    if (view.open[path])
        fact(list, 'Open', humanCount(view.open[path]));
    if (view.older[path])
        fact(list, 'Open before the attach', humanCount(view.older[path]));
    return list;
}

function showFrame(path) {
    const name = byId('frame-name');

    name.textContent = shorten(labelOf(path), 400);
    byId('frame-place').textContent = path ?
        placeOf(source.functions[view.function[path]]) : '';
    byId('frame-facts').replaceChildren(frameFacts(path));
    byId('zoom-out').disabled = flame.zoomed === 0;
}

function showTip(path, event) {
    const about = path > 0 ? source.functions[view.function[path]] : NOBODY;

    placeTip(event, path < 0 ? null : [
        element('strong', shorten(labelOf(path), 400)),
        element('span', placeOf(about), { class: 'place' }),
        frameFacts(path)]);
}

// Places the tooltip at the pointer; without @contents it is hidden.
function placeTip(event, contents) {
    const tip = byId('tip');

    tip.hidden = !contents;
    if (!contents)
        return;
    tip.replaceChildren(...contents);
    const right = event.clientX + 16 + tip.offsetWidth < innerWidth;
    const below = event.clientY + 20 + tip.offsetHeight < innerHeight;

    tip.style.left = `${right ? event.clientX + 12 :
        Math.max(event.clientX - tip.offsetWidth - 12, 4)}px`;
    tip.style.top = `${below ? event.clientY + 16 :
        Math.max(event.clientY - tip.offsetHeight - 12, 4)}px`;
}

function focusFrame(path) {
    showFrame(path);
    if (path > 0)
        chooseFunction(view.function[path]);
}
