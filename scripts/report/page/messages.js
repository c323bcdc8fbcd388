// Messages between processes on the timeline: a line from the call that sends to the
// call that receives, with a square where the message is there.

const LINES_MOST = 300;         // lines in a picture

// @messages as written by html.c, with the lanes of both ends.
function addMessages(times) {
    const byThread = new Map();

    times.lanes.forEach((lane, i) => {
        if (!lane.track)
            byThread.set(lane.thread, i);
    });
    times.messages = times.messages.map(([sender, from, receiver, to, bytes,
        tag]) => ({ from, to, bytes, tag, sender: byThread.get(sender),
        receiver: byThread.get(receiver) }))
        .filter(({ sender, receiver }) => sender !== undefined &&
            receiver !== undefined);
}

function messagesNote() {
    const { messages, messages_left_out: left } = times;

    return messages.length ? ` ${humanCount(messages.length)} messages` +
        `${left ? ` (and ${humanCount(left)} that took less time, not shown)` :
            ''}: a line leads from the call that sends to the call that ` +
        'receives.' : '';
}

// The middle of the innermost call of a lane at a time, or of the lane's head.
function messageEnd(drawing, lane, time) {
    const { picture } = drawing;
    const at = innermostAt(picture, lane, time);

    return at ? drawing.rowTop(lane, at.depth) +
        drawing.rowHeight(picture.lanes[lane]) / 2 :
        drawing.laneTop(lane) + HEAD / 2;
}

// Draws the messages in view, those that took the longest first.
function drawMessages(drawing) {
    const { context, picture, range, shown } = drawing;
    const inside = y => y > AXIS && y < shown;
    let count = 0;

    context.strokeStyle = context.fillStyle = picture.message;
    context.lineWidth = 1;
    for (const { from, to, sender, receiver } of times.messages) {
        if (to < range[0] || from > range[1])
            continue;
        const x1 = drawing.x(from), x2 = drawing.x(to);
        const y1 = messageEnd(drawing, sender, from);
        const y2 = messageEnd(drawing, receiver, to);

        if (!inside(y1) && !inside(y2))
            continue;
        context.beginPath();
        context.moveTo(x1, Math.max(y1, AXIS));
        context.lineTo(x2, Math.max(y2, AXIS));
        context.stroke();
        if (inside(y2))
            context.fillRect(x2 - 2, y2 - 2, 4, 4);
        if (++count === LINES_MOST)
            break;
    }
    drawing.messages = count;
}
