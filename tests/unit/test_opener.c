/*
 * What a process asks the opener, and what it does if that fails.  The test is the system.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "../../shim/os/opener.c"

#define SECRET "0123456789abcdef0123456789abcdef0123456789abcdef"

enum { SOCKET = 5, FILE_GIVEN = 6 };

static int connected, peers, asked, waited, received, file_given;
static int32_t answered;
static unsigned peer, user;
static unsigned connections, open_files;
static struct opener_request last;

int sys_connect(const char *name, unsigned time_ms)
{
	cr_expect(eq(str, (char *)name, "shim-opener-0123456789abcdef"));
	cr_expect(gt(u32, time_ms, 0));
	connections++;
	open_files += connected >= 0;
	return connected;
}

int sys_close(int fd)
{
	cr_expect(fd == SOCKET || fd == FILE_GIVEN);
	open_files--;
	return 0;
}

int sys_peer(int fd, unsigned *uid)
{
	cr_expect(eq(int, fd, SOCKET));
	*uid = peer;
	return peers;
}

int sys_user(unsigned *uid)
{
	*uid = user;
	return 0;
}

long sys_send(int fd, const void *buffer, size_t size)
{
	cr_expect(eq(int, fd, SOCKET));
	cr_assert(eq(sz, size, sizeof(last)));
	memcpy(&last, buffer, size);
	return asked < 0 ? asked : (long)size;
}

int sys_wait_input(int fd, unsigned time_ms)
{
	cr_expect(eq(int, fd, SOCKET));
	cr_expect(gt(u32, time_ms, 0));
	return waited;
}

int sys_receive(int fd, void *buffer, size_t size, int *file)
{
	cr_expect(eq(int, fd, SOCKET));
	cr_assert(eq(sz, size, sizeof(answered)));
	memcpy(buffer, &answered, size);
	*file = file_given;
	open_files += file_given >= 0;
	return received;
}

static void begin(void)
{
	connected = SOCKET;
	peers = asked = received = 0;
	waited = 1;
	answered = 0;
	file_given = -1;
	peer = 0;
	user = 65534;
	connections = open_files = 0;
	opener_use(SECRET);
}

/* Only the descriptor that is returned stays open. */
static void expect_answer(int wanted, const char *why)
{
	int r = opener_help(-EACCES, OPENER_OPEN, "/a/b/12.0", "meta");

	cr_expect(eq(int, r, wanted), "%s", why);
	cr_expect(eq(u32, open_files, wanted > 0), "%s", why);
}

Test(opener, it_is_asked_for_the_last_part_of_the_directory)
{
	begin();
	file_given = FILE_GIVEN;
	expect_answer(FILE_GIVEN, "a file");
	cr_expect(eq(u32, last.what, OPENER_OPEN));
	cr_expect(zero(int, memcmp(last.secret, SECRET, sizeof(last.secret))));
	cr_expect(eq(str, last.directory, "12.0"));
	cr_expect(eq(str, last.name, "meta"));
	begin();
	expect_answer(0, "no file");
	begin();
	answered = -EEXIST;
	expect_answer(-EEXIST, "its error");
	begin();
	peer = user;
	expect_answer(0, "the same user");
}

Test(opener, only_errors_of_rights_and_paths_are_for_it)
{
	static const int others[] = { -ENOSPC, -EMFILE, -EEXIST, -EINTR };
	static const int its[] = { -EACCES,	   -EPERM,   -EROFS,
				   -ENOENT,	   -ENOTDIR, -TRUST_OWNER,
				   -TRUST_REPLACED };

	begin();
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		cr_expect(eq(int, opener_help(others[i], OPENER_LOG, "", ""),
			     others[i]));
	cr_expect(zero(u32, connections));
	for (size_t i = 0; i < sizeof(its) / sizeof(*its); i++)
		cr_expect(zero(int, opener_help(its[i], OPENER_LOG, "", "")));
	cr_expect(eq(u32, connections, sizeof(its) / sizeof(*its)));
}

Test(opener, without_a_secret_there_is_none)
{
	static const char *const secrets[] = { "", "0123", SECRET "0" };

	for (size_t i = 0; i < sizeof(secrets) / sizeof(*secrets); i++) {
		begin();
		opener_use(secrets[i]);
		expect_answer(-EACCES, secrets[i]);
		cr_expect(zero(u32, connections));
	}
}

Test(opener, what_fails_leaves_no_descriptor)
{
	begin();
	connected = -EMFILE;
	expect_answer(-EMFILE, "no socket");
	begin();
	peers = -EINVAL;
	expect_answer(-EINVAL, "an unknown peer");
	begin();
	asked = -EPIPE;
	expect_answer(-EPIPE, "it has closed");
	begin();
	waited = -EINTR;
	expect_answer(-EINTR, "a wait that fails");
	begin();
	received = -EMFILE;
	expect_answer(-EMFILE, "no room for the file");
	begin();
	received = -EIO;
	file_given = FILE_GIVEN;
	expect_answer(-EIO, "a short answer with a file");
	begin();
	answered = 1;
	file_given = FILE_GIVEN;
	expect_answer(-EIO, "an answer that means nothing");
	begin();
	answered = 1;
	expect_answer(-EIO, "such a one without a file");
}

/* The program would wait for it again and again; or it is another user's. */
Test(opener, one_that_is_gone_is_not_asked_again)
{
	for (int i = 0; i < 4; i++) {
		begin();
		if (i == 0)
			connected = -ECONNREFUSED;
		else if (i == 1)
			connected = -EAGAIN;
		else if (i == 2)
			peer = 1000;
		else
			waited = 0;
		expect_answer(-EACCES, "the first time");
		cr_expect(eq(u32, connections, 1));
		expect_answer(-EACCES, "again");
		cr_expect(eq(u32, connections, 1));
	}
}
