/*
 * Calls in doubt, whose leave the engine may have missed.  Their functions carry
 * SHIM_NODE_EXACT, so that their leaves take the slow path.
 */
#include "path/doubt.h"
#include "path/throttled.h"

#include <shim/banned.h>

void node_trust(struct shim_node *node)
{
	const struct throttled *throttled;
	uint64_t frame = node->frame;

	if (!(frame & FRAME_IN_DOUBT))
		return;
	throttled = throttled_find(address_of(node));
	if (!(frame & FRAME_WAS_EXACT) &&
	    !(throttled && throttled_is_off(throttled)))
		node->function &= ~SHIM_NODE_EXACT;
	node->frame = frame_at(node) | (frame & FRAME_LEFT_OUT);
}

void node_doubt(struct shim_node *node)
{
	node->frame |= FRAME_IN_DOUBT |
		       (node->function & SHIM_NODE_EXACT ? FRAME_WAS_EXACT : 0);
	node->function |= SHIM_NODE_EXACT;
}
