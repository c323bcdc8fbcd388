// Colours of frames, for light and dark mode.

// Easily distinguishable hues, for the objects with the largest sums.
const HUES = [212, 28, 152, 272, 340, 56, 186, 88, 304, 4];

function hash(text) {
    let value = 2166136261;

    for (let i = 0; i < text.length && i < 1000; i++)
        value = Math.imul(value ^ text.charCodeAt(i), 16777619);
    return value >>> 0;
}

// From 0 to 1, the same for the same name.
function shade(name) {
    return hash(name) % 101 / 100;
}

function isDark() {
    const chosen = document.documentElement.dataset.theme;

    return chosen ? chosen === 'dark' :
        matchMedia('(prefers-color-scheme: dark)').matches;
}

// A lightness at which the frame's text is readable: a contrast of at least 4.5
// to 1.
function frameColor(hue, saturation, light, dark) {
    return dark ? `hsl(${hue} ${saturation * 0.7}% ${27 + light * 7}%)` :
        `hsl(${hue} ${saturation}% ${76 + light * 8}%)`;
}

// Choices for the meaning of a frame's colour: the objects, or files, with the
// largest sums first, or each function by itself.
const GROUPS = {
    object: about => about.object,
    file: about => about.file,
    function: about => about.name,
};

function rankGroups(source, sums, by) {
    const sizes = new Map();

    for (const row of sums) {
        const group = GROUPS[by](source.functions[row.function]);

        sizes.set(group, (sizes.get(group) || 0) + (row.self || row.calls));
    }
    return [...sizes.keys()].sort((a, b) => sizes.get(b) - sizes.get(a));
}

// The most informative choice: objects if there are several, otherwise files,
// if they are known.
function usefulGroups(source, sums) {
    for (const by of ['object', 'file'])
        if (rankGroups(source, sums, by).filter(group => group).length > 2)
            return by;
    return 'function';
}

class Palette {
    constructor(source, sums, by) {
        this.functions = source.functions;
        this.by = by;
        this.groups = rankGroups(source, sums, by);
        this.places = new Map(this.groups.map((group, i) => [group, i]));
        this.dark = isDark();
        this.made = [];
    }

    groupColor(group, light = 0.5) {
        const place = this.places.get(group);

        if (group === null || place === undefined)
            return frameColor(220, 6, light, this.dark);
        return place < HUES.length ?
            frameColor(HUES[place], 55, light, this.dark) :
            frameColor(hash(group) % 360, 22, light, this.dark);
    }

    color(number) {
        if (number < 0)
            return frameColor(220, 8, 0.9, this.dark);
        if (!this.made[number])
            this.made[number] = this.make(this.functions[number]);
        return this.made[number];
    }

    make(about) {
        const light = shade(about.name);

        return this.by === 'function' ?
            frameColor(hash(about.name) % 360, 48, light, this.dark) :
            this.groupColor(GROUPS[this.by](about), light);
    }
}
