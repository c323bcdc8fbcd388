// The earlier recording beside this one: its call paths in the same colours, and
// both zoom together.

let flameBefore;

// What makes a path of the one recording a path of the other: where there is
// none, its nearest caller that exists in both.
function counterpart(path, parents, others) {
    while (path > 0 && others[path] < 0)
        path = parents[path];
    return Math.max(others[path], 0);
}

function makeBefore() {
    flameBefore = new Flame(byId('graph-before'), byId('flame-before'), {
        point: showBeforeTip,
        focus: path => {
            const now = before.same[path];

            if (now > 0)
                flame.focus(now);
            else if (path > 0)
                chooseFunction(before.view.function[path]);
        },
        zoom: path => zoomTogether(flame, counterpart(path,
            before.view.parent, before.same)),
    });
}

// Zooms the other drawing, which then does not answer.
function zoomTogether(other, path) {
    if (other && other.picture && other.zoomed !== path) {
        other.zoomed = path;
        other.move(other.rangeOf(path));
    }
    byId('zoom-out').disabled = flame.zoomed === 0;
    keepLink();
}

function zoomBefore(path) {
    if (before)
        zoomTogether(flameBefore, counterpart(path, view.parent,
            before.places));
}

// "+3.1 %", with its standard error if there is one; "" if nothing is known of it.  What is
// there may take no time that can be measured.
function noteOfChange(now, then, noise, isThere = now > 0, wasThere = then > 0) {
    if (!(now > 0) && !(then > 0))
        return '';
    if (!wasThere)
        return 'new';
    if (!isThere)
        return 'gone';
    if (!(then > 0))
        return '';
    const part = 100 * (now - then) / then;

    return `${signed(Math.abs(part).toFixed(1), part)}${noise > 0 ?
        ` \u00b1 ${(100 * noise / then).toFixed(1)}` : ''} %`;
}

function labelBefore(path) {
    return path === 0 ? 'all' :
        visible(source.functions[before.view.function[path]].name);
}

// The values of @path of the earlier recording: [now, then, error].
function valuesBefore(path) {
    const now = before.same[path];

    return [now < 0 ? 0 : measured.total[now], before.measured.total[path],
        before.noise && now >= 0 ? before.noise[now] : 0];
}

function showBefore() {
    byId('beside-now').hidden = byId('side-before').hidden = !before;
    byId('sides').classList.toggle('two', Boolean(before));
    if (!before)
        return;
    if (!flameBefore)
        makeBefore();
    const { view: tree, measured: then } = before;
    const changeOf = (path, dark) => changeColor(change(...valuesBefore(path)),
        dark);

    flameBefore.show({
        ...pictureOf(tree, then.total, labelBefore,
            state.colors === 'change' ? changeOf : null),
        note: path => {
            const [now] = valuesBefore(path);

            return path && !(now > 0) && before.same[path] < 0 ? 'gone' : '';
        },
    });
    flameBefore.mark(flame.marks);
}

function showBeforeTip(path, event) {
    if (path < 0) {
        placeTip(event, null);
        return;
    }
    const [now, then, noise] = valuesBefore(path);
    const list = element('dl', '', { class: 'facts' });
    const format = human[METRICS[state.metric].unit];

    fact(list, 'Before', format(then));
    fact(list, 'Now', `${format(now)} (${noteOfChange(now, then, noise,
        before.same[path] >= 0)})`);
    placeTip(event, [element('strong', shorten(labelBefore(path), 400)), list]);
}
