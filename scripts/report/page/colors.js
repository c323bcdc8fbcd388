// Colours: calm ones for frames, in light and in dark.

// Hues that are told apart easily, for the objects with most in them.
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

// Where on a frame's lightness its text can be read: at least 4.5 to 1.
function frameColor(hue, saturation, light, dark) {
    return dark ? `hsl(${hue} ${saturation * 0.6}% ${25 + light * 7}%)` :
        `hsl(${hue} ${saturation}% ${76 + light * 8}%)`;
}

// The objects of @source, those with the largest sums first.
function rankObjects(source, sums) {
    const sizes = new Map();

    for (const row of sums) {
        const object = source.functions[row.function].object;

        sizes.set(object, (sizes.get(object) || 0) + (row.self || row.calls));
    }
    return [...sizes.keys()].sort((a, b) => sizes.get(b) - sizes.get(a));
}

class Palette {
    constructor(source, objects, by) {
        this.functions = source.functions;
        this.places = new Map(objects.map((object, i) => [object, i]));
        this.by = by;
        this.dark = isDark();
        this.made = [];
    }

    objectColor(object, light = 0.5) {
        const place = this.places.get(object);

        if (object === null || place === undefined || place >= HUES.length)
            return frameColor(220, 6, light, this.dark);
        return frameColor(HUES[place], 55, light, this.dark);
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

        return this.by === 'object' ? this.objectColor(about.object, light) :
            frameColor(hash(about.name) % 360, 48, light, this.dark);
    }
}
