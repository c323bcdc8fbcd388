// The legend: every colour in view, with its name.

const LEGEND_MOST = 12;         // functions or groups, before more are asked for

let legendTimer = 0, wholeLegend = false;
let legendRoom = 0;             // its largest height

// Drawings call this after each picture; the legend follows when they rest.
function showLegendSoon() {
    clearTimeout(legendTimer);
    legendTimer = setTimeout(showLegend, 120);
    setPending('legend', true);
}

// The functions of the source that are in view; the names of other colours.
function inView() {
    const numbers = new Set();
    const others = new Map();
    const drawings = [flame, before && flameBefore, ...['above', 'below'].map(id => (byId(
        `paths-${id}`).hidden ? null : { above, below }[id]))];

    for (const drawing of drawings) {
        if (!drawing || !drawing.drawn)
            continue;
        drawing.drawn.forEach((is, number) => is && numbers.add(number));
        if (drawing.hasNarrow)
            others.set('too narrow to be told apart', css('--merged'));
    }
    if (timeline && timeline.drawn) {
        const own = numbersOfTimes();

        timeline.drawn.forEach((is, number) => is && own[number] >= 0 &&
            numbers.add(own[number]));
        if (timeline.hasRuns)
            others.set('short calls together', css('--merged'));
        if (timeline.hasWaits)
            others.set(times.waits.some(wait => wait.length > 9) ? 'waits' :
                'waits for a lock', css('--wait'));
        if (timeline.messages)
            others.set('messages', css('--message'));
    }
    if (flame.marks)
        others.set('found', css('--found'));
    return { numbers: [...numbers], others };
}

// The functions @numbers, those with the largest sums first.
function bySize(numbers) {
    const sizes = new Map(view.sums.map(row =>
        [row.function, row.self || row.calls]));

    return numbers.sort((a, b) => (sizes.get(b) || 0) - (sizes.get(a) || 0) ||
        a - b);
}

// [name, colour, title] of each function or group, the largest first; the same of what else
// has a colour, which is always shown.
function legendItems() {
    const palette = makePalette();
    const { numbers, others } = inView();
    const rest = [...others].map(([name, color]) => [name, color, '']);

    if (state.colors === 'change')
        return [[['less than before', -1],
            ['as before, or by the clock\u2019s error', 0],
            ['more, or new', 1]].map(([name, part]) =>
            [name, changeColor(part, palette.dark), '']), rest];
    if (state.colors === 'function')
        return [bySize(numbers).map(number => {
            const name = visible(source.functions[number].name);

            return [shorten(shortName(name), 50), palette.color(number),
                shorten(name, 2000)];
        }), rest];
    const groups = new Set(numbers.map(number =>
        GROUPS[state.colors](source.functions[number])));

    return [palette.groups.filter(group => groups.has(group)).map(group => [
        group ? visible(baseName(group)) : 'unknown',
        palette.groupColor(group), visible(group || '')]), rest];
}

function showLegend() {
    setPending('legend', false);
    const [items, rest] = legendItems();
    const most = wholeLegend || items.length <= LEGEND_MOST + 1 ? items.length :
        LEGEND_MOST;
    const lines = items.slice(0, most).concat(rest).map(([name, color, title]) => {
        const item = element('li', name, { title });
        const swatch = element('span', '', { class: 'swatch' });

        swatch.style.background = color;
        item.prepend(swatch);
        return item;
    });

    if (items.length > LEGEND_MOST + 1) {
        const button = element('button', wholeLegend ? 'fewer' :
            `${humanCount(items.length - most)} more`, { type: 'button' });

        button.addEventListener('click', () => {
            wholeLegend = !wholeLegend;
            showLegend();
            byId('legend').querySelector('button').focus();
        });
        lines.push(element('li'));
        lines[lines.length - 1].append(button);
    }
    const list = byId('legend');

    list.hidden = !lines.length;
    list.classList.toggle('whole', wholeLegend);
    list.replaceChildren(...lines);
    // Fewer names leave their room, so that what is below stays where it is.
    if (!wholeLegend)
        legendRoom = Math.max(legendRoom, list.offsetHeight);
    list.style.minHeight = `${legendRoom}px`;
}
