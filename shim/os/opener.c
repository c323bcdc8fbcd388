/*
 * Asks profrun's opener.  Each request has a connection of its own, so that the program has
 * no descriptor of shim's afterwards.
 */
#include "os/opener.h"

#include "os/sys.h"
#include "os/text.h"
#include "os/trust.h"

#include <errno.h>

#include <shim/banned.h>

/* An opener that takes longer has been stopped. */
#define WAIT_MS 1000

static char secret[OPENER_SECRET_SIZE + 1]; /* "": there is no opener */
static bool is_over;

void opener_use(const char *given)
{
	struct text text;

	text_init(&text, secret, sizeof(secret));
	text_add(&text, given);
	if (text.cut || text.length != OPENER_SECRET_SIZE)
		secret[0] = '\0';
	is_over = false;
}

/* Whether @error is one of rights, or of a path that leads elsewhere for this process. */
static bool may_help(int error)
{
	return secret[0] && !__atomic_load_n(&is_over, __ATOMIC_RELAXED) &&
	       (error == -EACCES || error == -EPERM || error == -EROFS ||
		error == -ENOENT || error == -ENOTDIR || error <= -TRUST_OWNER);
}

/* After profrun's end, anybody may have its socket's name. */
static int check_peer(int fd)
{
	unsigned peer, user;
	int r = sys_peer(fd, &peer);

	if (r == 0)
		r = sys_user(&user);
	if (r != 0)
		return r;
	return peer == 0 || peer == user ? 0 : -EACCES;
}

static int connect_to_opener(void)
{
	char name[sizeof(OPENER_PREFIX) + OPENER_NAME_SIZE];
	struct text text;
	int fd, r;

	text_init(&text, name, sizeof(name));
	text_add(&text, OPENER_PREFIX);
	text_add_part(&text, secret, OPENER_NAME_SIZE);
	fd = sys_connect(name, WAIT_MS);
	if (fd < 0)
		return fd;
	r = check_peer(fd);
	if (r < 0)
		sys_close(fd);
	return r < 0 ? r : fd;
}

static int ask(int fd, const struct opener_request *request)
{
	int32_t answer;
	int opened, r;
	long size = sys_send(fd, request, sizeof(*request));

	if (size < 0)
		return (int)size;
	r = sys_wait_input(fd, WAIT_MS);
	if (r <= 0)
		return r < 0 ? r : -ETIMEDOUT;
	r = sys_receive(fd, &answer, sizeof(answer), &opened);
	if (r == 0 && answer > 0)
		r = -EIO;
	if (r == 0)
		return opened >= 0 ? opened : answer;
	if (opened >= 0)
		sys_close(opened);
	return r;
}

int opener_help(int error, enum opener_what what, const char *directory,
		const char *name)
{
	struct opener_request request = { .what = (uint32_t)what };
	struct text text;
	int fd, r;

	if (!may_help(error))
		return error;
	for (unsigned i = 0; i < OPENER_SECRET_SIZE; i++)
		request.secret[i] = secret[i];
	text_init(&text, request.directory, sizeof(request.directory));
	text_add(&text, text_base(directory));
	text_init(&text, request.name, sizeof(request.name));
	text_add(&text, name);
	fd = connect_to_opener();
	r = fd < 0 ? fd : ask(fd, &request);
	if (fd >= 0)
		sys_close(fd);
	if (fd == -ECONNREFUSED || fd == -EACCES || fd == -EAGAIN ||
	    r == -ETIMEDOUT) {
		__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
		return error;
	}
	return r;
}
