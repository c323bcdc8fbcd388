/*
 * Two processes, whose rank is the first word, tell of messages: ranks.py starts them as a
 * job of two.  They meet by the pipes "to.0" and "to.1", so it is certain who is late.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <shim/message.h>

#define CALL __attribute__((noinline)) static
/* What a call does here is done in the call itself. */
#define PART __attribute__((no_instrument_function)) static

static int rank, mine, other;

PART void tell(int tag, int kind, unsigned sent, unsigned received,
	       unsigned order)
{
	struct shim_message message = {
		.kind = (uint16_t)kind,
		.tag = tag,
		.communicator = 99,
		.size = 2,
		.rank = (uint32_t)rank,
		.peer = kind != SHIM_MESSAGE_COLLECTIVE ? 1 - rank :
			tag == SHIM_COLLECTIVE_BARRIER	? -1 :
							  0,
		.order = order,
		.sent = sent,
		.received = received,
	};

	if (shim_message_emit && shim_message_emit(&message) < 0)
		exit(3);
}

PART void sent(int tag, unsigned bytes)
{
	tell(tag, SHIM_MESSAGE_SEND, bytes, 0, 0);
}

PART void received(int tag, unsigned bytes, unsigned order)
{
	tell(tag, SHIM_MESSAGE_RECEIVE, 0, bytes, order);
}

PART void push(void)
{
	if (write(other, "", 1) != 1)
		exit(4);
}

PART void pull(void)
{
	char byte;

	if (read(mine, &byte, 1) != 1)
		exit(5);
}

CALL void send_late(void)
{
	sent(5, 100);
	push();
}

CALL void receive(void)
{
	push();
	pull();
	received(5, 100, 1);
}

CALL void meet(void)
{
	push();
	if (rank == 1)
		pull();
	tell(SHIM_COLLECTIVE_BARRIER, SHIM_MESSAGE_COLLECTIVE, 0, 0, 0);
}

/* The root is late. */
CALL void spread(void)
{
	push();
	if (rank == 1)
		pull();
	tell(SHIM_COLLECTIVE_BCAST, SHIM_MESSAGE_COLLECTIVE, 0, 0, 0);
}

/* The root is late, but does not need the other. */
CALL void collect(void)
{
	push();
	if (rank == 1)
		pull();
	tell(SHIM_COLLECTIVE_GATHER, SHIM_MESSAGE_COLLECTIVE, 0, 0, 0);
}

CALL void hand_over(void)
{
	sent(6, 200);
	push();
	pull();
}

CALL void take_late(void)
{
	received(6, 200, 2);
	push();
}

/* The second is made ready last, so it is the third message. */
CALL void send_three(void)
{
	for (unsigned i = 1; i <= 3; i++)
		sent(7, i);
	sent(9, 1000);
}

CALL void receive_three(void)
{
	received(7, 1, 10);
	received(7, 3, 12);
	received(7, 2, 11);
}

static void run_first(void)
{
	pull(); /* the other one is in receive() */
	send_late();
	pull(); /* it is in meet() */
	meet();
	pull();
	spread();
	pull();
	collect();
	send_three();
	hand_over();
}

static void run_second(void)
{
	receive();
	meet();
	spread();
	collect();
	pull(); /* the other one is in hand_over() */
	take_late();
	receive_three();
}

int main(int argc, char **argv)
{
	rank = argc > 1 ? atoi(argv[1]) : 0;
	mine = open(rank ? "to.1" : "to.0", O_RDWR);
	other = open(rank ? "to.0" : "to.1", O_RDWR);
	if (mine < 0 || other < 0)
		return 2;
	tell(0, SHIM_MESSAGE_MEMBER, 0, 0, 0);
	if (rank)
		run_second();
	else
		run_first();
	return 0;
}
