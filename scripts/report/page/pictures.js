// Saves what a drawing shows, with all of its rows, as SVG or PNG.

const PNG_SCALE = 2;
const PNG_MOST = 16000;         // pixels on a side

function escaped(text) {
    return visible(String(text)).replace(/[&<>"]/g, c =>
        `&#${c.charCodeAt(0)};`);
}

// A context that writes what is drawn as SVG; @real measures texts.
class SvgContext {
    constructor(real) {
        this.real = real;
        this.parts = [];
        this.globalAlpha = 1;
    }

    set font(font) {
        this.real.font = font;
    }

    measureText(text) {
        return this.real.measureText(text);
    }

    clearRect() {
    }

    get opacity() {
        return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : '';
    }

    static box(x, y, width, height) {
        return ['x', 'y', 'width', 'height'].map((key, i) => `${key}="${
            Number([x, y, width, height][i].toFixed(2))}"`).join(' ');
    }

    fillRect(x, y, width, height) {
        if (width > 0 && height > 0)
            this.parts.push(`<rect ${SvgContext.box(x, y, width, height)} ` +
                `fill="${this.fillStyle}"${this.opacity}/>`);
    }

    strokeRect(x, y, width, height) {
        this.parts.push(`<rect ${SvgContext.box(x, y, width, height)} ` +
            `fill="none" stroke="${this.strokeStyle}" ` +
            `stroke-width="${this.lineWidth}"/>`);
    }

    fillText(text, x, y) {
        if (text)
            this.parts.push(`<text x="${Number(x.toFixed(2))}" ` +
                `y="${Number(y.toFixed(2))}" fill="${this.fillStyle}"${
                    this.opacity}>${escaped(text)}<\/text>`);
    }
}

// Instead of pixels.
class SvgRaster {
    begin(context) {
        this.context = context;
    }

    // Vector pictures have no lines to copy.
    beginRow() {
    }

    endRow() {
    }

    rect(left, top, width, height, color, alpha = 1) {
        this.context.globalAlpha = alpha;
        this.context.fillStyle = color;
        this.context.fillRect(left, top, Math.max(width, 1), height);
        this.context.globalAlpha = 1;
    }

    end() {
    }
}

// Draws all rows of @drawing into @context.
function drawInto(drawing, context, raster) {
    const { box, shown, pointed, context: own, raster: pixels } = drawing;

    Object.assign(drawing, { context, raster, box: { scrollTop: 0 },
        shown: drawing.height, pointed: drawing instanceof Flame ? -1 : null });
    context.font = drawing.picture.font;
    context.textBaseline = 'middle';
    drawing.draw();
    Object.assign(drawing, { context: own, raster: pixels, box, shown,
        pointed });
    drawing.drawNow();
}

function svgOf(drawing, title) {
    const svg = new SvgContext(drawing.context);
    const { width, height } = drawing;

    drawInto(drawing, svg, new SvgRaster());
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" ` +
        `height="${height}" viewBox="0 0 ${width} ${height}" role="img" ` +
        'font-size="12" font-family="system-ui, sans-serif" ' +
        `dominant-baseline="middle"><title>${escaped(title)}<\/title>` +
        `<rect width="100%" height="100%" fill="${css('--panel')}"/>` +
        `${svg.parts.join('\n')}<\/svg>\n`;
}

function pngOf(drawing, done) {
    const canvas = document.createElement('canvas');
    const scale = Math.min(PNG_SCALE, PNG_MOST / drawing.height);
    const context = canvas.getContext('2d');

    canvas.width = Math.round(drawing.width * scale);
    canvas.height = Math.round(drawing.height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    drawInto(drawing, context, new Raster());
    context.globalCompositeOperation = 'destination-over';
    context.fillStyle = css('--panel');
    context.fillRect(0, 0, drawing.width, drawing.height);
    canvas.toBlob(done, 'image/png');
}

function save(blob, name) {
    const anchor = element('a', '', { download: name });

    anchor.href = URL.createObjectURL(blob);
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(anchor.href), 10000);
}

// @what: 'paths' or 'timeline'.
function savePicture(what, type) {
    const drawing = what === 'paths' ? flame : timeline;
    const name = `${profile.recording.replace(/[^\w.-]/g, '_')}-${what}.${type}`;

    if (type === 'svg')
        save(new Blob([svgOf(drawing, `${document.title}: ${what}`)],
            { type: 'image/svg+xml' }), name);
    else
        pngOf(drawing, blob => save(blob, name));
}
