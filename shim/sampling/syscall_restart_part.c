/* Computes the arguments of a system call that does the rest of an interrupted one. */
#define _GNU_SOURCE
#include "sampling/syscall_restart_part.h"

#include "os/sys.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <shim/banned.h>

#define PIECES 8 /* read in one system call */

/* A partial write to a regular file is no interruption: the write reached a limit, or
 * the disk is full. */
static bool is_regular(long fd)
{
	uint64_t device, inode, size;

	return sys_file((int)fd, &device, &inode, &size) != -ESPIPE;
}

/* --- memory in one piece --- */

static bool skip_done(struct arch_call *call, unsigned buffer, unsigned size,
		      long done, long unit)
{
	if (done >= call->arguments[size])
		return false;
	call->arguments[buffer] += done * unit;
	call->arguments[size] -= done;
	return true;
}

/* --- memory in several pieces --- */

/* Finds the piece of byte @done, and its rest; earlier pieces are done. */
static bool find_piece(const struct iovec *pieces, size_t count, size_t done,
		       size_t *number, struct iovec *rest)
{
	struct iovec some[PIECES];
	size_t i, read;

	for (i = 0; i < count; i++) {
		if (i % PIECES == 0) {
			read = count - i < PIECES ? count - i : PIECES;
			if (sys_peek(pieces + i, some, read * sizeof(*some)) <
			    0)
				return false;
		}
		if (done < some[i % PIECES].iov_len)
			break;
		done -= some[i % PIECES].iov_len;
	}
	if (i == count)
		return false;
	*number = i;
	*rest = some[i % PIECES];
	rest->iov_base = (char *)rest->iov_base + done;
	rest->iov_len -= done;
	return done > 0 || i > 0;
}

static bool has_begun(const struct iovec *pieces, size_t number,
		      const struct iovec *rest)
{
	struct iovec whole;

	return sys_peek(pieces + number, &whole, sizeof(whole)) == 0 &&
	       whole.iov_len != rest->iov_len;
}

/* The rest of a piece that has begun; otherwise the pieces after it. */
static bool rest_of_pieces(struct arch_call *call, long done)
{
	const struct iovec *pieces = (const struct iovec *)call->arguments[1];
	struct iovec rest;
	size_t number;

	if (!find_piece(pieces, (size_t)call->arguments[2], (size_t)done,
			&number, &rest))
		return false;
	if (has_begun(pieces, number, &rest)) {
		call->number = SYS_write;
		call->arguments[1] = (long)rest.iov_base;
		call->arguments[2] = (long)rest.iov_len;
	} else {
		call->arguments[1] = (long)(pieces + number);
		call->arguments[2] -= (long)number;
	}
	return true;
}

/* The first part has sent the addresses and control data. */
static bool rest_of_message(struct part_rest *to, const void *from, long done,
			    long in_one_piece)
{
	struct arch_call *call = &to->call;
	struct msghdr *message = &to->message;
	struct iovec rest;
	size_t number;

	if (sys_peek(from, message, sizeof(*message)) < 0 ||
	    !find_piece(message->msg_iov, message->msg_iovlen, (size_t)done,
			&number, &rest))
		return false;
	if (has_begun(message->msg_iov, number, &rest)) {
		call->number = in_one_piece;
		call->arguments[3] = call->arguments[2];
		call->arguments[1] = (long)rest.iov_base;
		call->arguments[2] = (long)rest.iov_len;
		call->arguments[4] = call->arguments[5] = 0;
		return true;
	}
	*message = (struct msghdr){ .msg_iov = message->msg_iov + number,
				    .msg_iovlen = message->msg_iovlen -
						  number };
	call->arguments[1] = (long)message;
	return true;
}

/* The last counted message may have been cut. */
static bool rest_of_messages(struct part_rest *to, long done)
{
	struct arch_call *call = &to->call;
	struct mmsghdr *all = (struct mmsghdr *)call->arguments[1];
	unsigned length;

	if (sys_peek(&all[done - 1].msg_len, &length, sizeof(length)) < 0)
		return false;
	if (length > 0) {
		const struct arch_call before = *call;

		call->number = SYS_sendmsg;
		call->arguments[2] = call->arguments[3];
		if (rest_of_message(to, &all[done - 1].msg_hdr, length,
				    SYS_sendto)) {
			to->length = &all[done - 1].msg_len;
			return true;
		}
		*call = before;
	}
	return skip_done(call, 1, 2, done, sizeof(*all));
}

/* All was submitted, and the result does not tell whether the wait ended: that for results
 * that are there ends at once.  With a timeout, which may have passed, the program goes on. */
static bool rest_of_ring(struct arch_call *call, long done)
{
	long *a = call->arguments;

	if (a[1] != done || a[2] == 0 || !(a[3] & RING_WAITS) ||
	    (a[3] & RING_HAS_STRUCT))
		return false;
	a[1] = 0;
	return true;
}

bool part_find_rest(const struct arch_call *given, long done,
		    struct part_rest *rest)
{
	struct arch_call *call = &rest->call;
	const long *a = given->arguments;

	rest->length = NULL;
	*call = (struct arch_call){ .number = given->number };
	for (unsigned i = 0; i < 6; i++)
		call->arguments[i] = a[i];
	switch (call->number) {
	case SYS_write:
		return !is_regular(a[0]) && skip_done(call, 1, 2, done, 1);
	case SYS_writev: return !is_regular(a[0]) && rest_of_pieces(call, done);
	case SYS_sendto: return skip_done(call, 1, 2, done, 1);
	case SYS_sendmsg:
		return rest_of_message(rest, (void *)a[1], done, SYS_sendto);
	case SYS_sendmmsg: return rest_of_messages(rest, done);
	case SYS_recvfrom:
		return (a[3] & MSG_WAITALL) && skip_done(call, 1, 2, done, 1);
	case SYS_recvmsg:
		return (a[2] & MSG_WAITALL) &&
		       rest_of_message(rest, (void *)a[1], done, SYS_recvfrom);
	case SYS_recvmmsg:
		return !(a[3] & (MSG_WAITFORONE | MSG_DONTWAIT)) && a[4] == 0 &&
		       skip_done(call, 1, 2, done, sizeof(struct mmsghdr));
	case SYS_getrandom: return skip_done(call, 0, 1, done, 1);
	/* At the end of the file, the repeated call does nothing. */
	case SYS_sendfile:
		return is_regular(a[1]) && skip_done(call, 3, 3, done, 0);
	case SYS_copy_file_range: return skip_done(call, 4, 4, done, 0);
	case SYS_io_uring_enter: return rest_of_ring(call, done);
	}
	return false;
}
