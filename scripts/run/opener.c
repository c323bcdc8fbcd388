/*
 * Programs that root starts become other users, who have no access to the recording: workers
 * of servers, above all.  For them a process of profrun, the opener, creates and opens files
 * and sends the descriptors.  It goes on after profrun as long as one of them lives: a server
 * may become a daemon.
 *
 * Any process of the machine can connect.  The opener serves those that know the secret,
 * which is in the environment of the run's processes, and lets each use only its own
 * directory, the last PID.N.  It follows no links, and opens nothing by a name that shim would not
 * choose.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "opener.h"
#include "os/fine_tick.h"
#include "os/opener.h"
#include "private.h"
#include "recording.h"

#define START_MS    1
#define LOOK_MS	    1000 /* between looks whether it is needed */
#define BACKLOG	    128
#define CONNECTIONS 256
#define LOG	    "log"
#define VARIABLE    "SHIM_OPENER="

static char secret[OPENER_SECRET_SIZE + 1];
static pid_t opener = -1;

/* --- the socket ---------------------------------------------------------- */

static bool choose_secret(void)
{
	unsigned char random[OPENER_SECRET_SIZE / 2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(secret + 2 * i, 3, "%02x", random[i]);
	return true;
}

static int listen_to_all(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int size = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
			    OPENER_PREFIX "%.*s", OPENER_NAME_SIZE, secret);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&address,
		 offsetof(struct sockaddr_un, sun_path) + 1 + size) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	close(fd);
	return -1;
}

/* --- requests ------------------------------------------------------------ */

/* A child of vfork records into the directory of its parent. */
static bool share_memory(pid_t one, pid_t other)
{
	return syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0) == 0;
}

/* Whether @name is PID.N, for the process @pid. */
static bool is_directory_of(const char *name, pid_t pid)
{
	static const char digits[] = "0123456789";
	size_t n = strspn(name, digits);
	pid_t owner = n < sizeof("4194304") ? atoi(name) : 0;

	if (*name == '0' || owner <= 0 || name[n] != '.' ||
	    name[n + 1] == '\0' ||
	    strspn(name + n + 1, digits) != strlen(name + n + 1))
		return false;
	return owner == pid || share_memory(owner, pid);
}

/* Whether @name, a name PID.N, is the last one of its process.  If root's su executes a shell,
 * that belongs to another user: it may not open the files of su, which has the same PID. */
static bool is_last(int recording, const char *name)
{
	const char *number = strchr(name, '.') + 1;
	char next[64];

	snprintf(next, sizeof(next), "%.*s%ld", (int)(number - name), name,
		 atol(number) + 1);
	return faccessat(recording, next, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

/* "meta", "images", "0.calltree" */
static bool is_file_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";

	return *name != '\0' && *name != '.' &&
	       strspn(name, letters) == strlen(name);
}

static bool is_list(const char *name)
{
	return strcmp(name, "filter") == 0 || strcmp(name, "patch") == 0 ||
	       strcmp(name, "libcalls") == 0;
}

static int or_error(int result)
{
	return result < 0 ? -errno : result;
}

static int open_file(int directory, const char *name, int flags)
{
	int fd = openat(directory, name,
			flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	    st.st_uid == geteuid()) {
		if (flags & O_CREAT)
			fchmod(fd, 0600);
		return fd;
	}
	close(fd);
	return -EACCES;
}

/* The requests for a file in the directory of a process. */
static int serve_file(int recording, const struct opener_request *request)
{
	int directory = private_open(recording, request->directory), r;

	if (directory < 0)
		return directory < -4095 ? -EACCES : directory;
	switch (request->what) {
	case OPENER_CREATE:
		r = open_file(directory, request->name,
			      O_RDWR | O_CREAT | O_EXCL);
		break;
	case OPENER_OPEN:
		r = open_file(directory, request->name, O_RDWR);
		break;
	default: r = or_error(unlinkat(directory, request->name, 0));
	}
	close(directory);
	return r;
}

/* Returns a descriptor, or 0, or -errno. */
static int serve(int recording, const struct opener_request *request, pid_t pid)
{
	int r;

	switch (request->what) {
	case OPENER_ANSWER: return 0;
	case OPENER_TICK: return open_file(recording, FINE_TICK_NAME, O_RDONLY);
	case OPENER_LIST:
		return is_list(request->name) ?
			       open_file(recording, request->name, O_RDONLY) :
			       -EPERM;
	case OPENER_LOG:
		return open_file(recording, LOG, O_WRONLY | O_APPEND | O_CREAT);
	}
	if (!is_directory_of(request->directory, pid))
		return -EPERM;
	switch (request->what) {
	case OPENER_MAKE_DIRECTORY:
		r = private_make(recording, request->directory);
		return r < -4095 ? -EACCES : r;
	case OPENER_REMOVE_DIRECTORY:
		return or_error(
			unlinkat(recording, request->directory, AT_REMOVEDIR));
	case OPENER_CREATE:
	case OPENER_OPEN:
	case OPENER_REMOVE:
		return is_file_name(request->name) &&
				       is_last(recording, request->directory) ?
			       serve_file(recording, request) :
			       -EPERM;
	}
	return -EINVAL;
}

/* Takes as long for each wrong secret. */
static bool is_secret(const char *given)
{
	unsigned char differs = 0;

	for (size_t i = 0; i < OPENER_SECRET_SIZE; i++)
		differs |= given[i] ^ secret[i];
	return differs == 0;
}

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool receive(int fd, struct opener_request *request, pid_t *pid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
	    recv(fd, request, sizeof(*request), MSG_DONTWAIT) !=
		    sizeof(*request))
		return false;
	*pid = peer.pid;
	return is_secret(request->secret) &&
	       ends(request->directory, sizeof(request->directory)) &&
	       ends(request->name, sizeof(request->name));
}

static void answer(int fd, int result)
{
	union {
		struct cmsghdr head;
		char memory[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	int32_t number = result < 0 ? result : 0;
	struct iovec part = { &number, sizeof(number) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (result > 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &result, sizeof(int));
	}
	sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void serve_one(struct pollfd *connection, int recording)
{
	struct opener_request request;
	int result;
	pid_t pid;

	if (receive(connection->fd, &request, &pid)) {
		result = serve(recording, &request, pid);
		answer(connection->fd, result);
		if (result > 0)
			close(result);
	}
	close(connection->fd);
	connection->fd = -1;
}

/* Accepts a connection, instead of the oldest. */
static void admit(int listener, struct pollfd connections[CONNECTIONS])
{
	static unsigned int next;
	struct pollfd *connection = &connections[next++ % CONNECTIONS];

	if (connection->fd >= 0)
		close(connection->fd);
	connection->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

/* --- whether it is needed ------------------------------------------------ */

static bool has_secret(const char *process)
{
	char path[64], *variable = NULL;
	size_t size = 0;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.20s/environ", process);
	file = fopen(path, "re");
	while (file != NULL && !found &&
	       getdelim(&variable, &size, '\0', file) > 0)
		found = strncmp(variable, VARIABLE, strlen(VARIABLE)) == 0 &&
			strcmp(variable + strlen(VARIABLE), secret) == 0;
	free(variable);
	if (file != NULL)
		fclose(file);
	return found;
}

/* Between fork or exec and the begin of their recordings, processes have the secret only. */
static bool any_has_secret(void)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (processes != NULL && !found &&
	       (entry = readdir(processes)) != NULL)
		found = isdigit((unsigned char)entry->d_name[0]) &&
			has_secret(entry->d_name);
	if (processes != NULL)
		closedir(processes);
	return found;
}

static bool is_needed(const char *directory)
{
	return recording_is_alive(directory) || any_has_secret();
}

/* --- the process --------------------------------------------------------- */

/* Keeps only the @listener, as number 0. */
static void close_others(int listener)
{
	if (dup2(listener, 0) < 0)
		_exit(1);
	descriptors_close_from(1);
}

/* Serves until profrun and all processes of the recording have ended.  Connections without a
 * request do not delay others. */
static void serve_all(int recording, const char *directory, pid_t parent)
{
	static struct pollfd polled[1 + CONNECTIONS];

	for (unsigned int i = 0; i <= CONNECTIONS; i++)
		polled[i] = (struct pollfd){ .fd = i == 0 ? 0 : -1,
					     .events = POLLIN };
	while (getppid() == parent || is_needed(directory))
		while (poll(polled, 1 + CONNECTIONS, LOOK_MS) > 0) {
			for (unsigned int i = 1; i <= CONNECTIONS; i++)
				if (polled[i].revents != 0)
					serve_one(&polled[i], recording);
			if (polled[0].revents != 0)
				admit(0, polled + 1);
		}
}

static void be_opener(int listener, const char *directory, const bool *is_there,
		      pid_t parent)
{
	int recording;

	prctl(PR_SET_NAME, "shim-opener");
	close_others(listener);
	umask(0077);
	while (!__atomic_load_n(is_there, __ATOMIC_ACQUIRE)) {
		if (getppid() != parent)
			_exit(0);
		poll(NULL, 0, START_MS);
	}
	recording = private_open(AT_FDCWD, directory);
	/* Nobody waits for its end on a terminal, or unmounts what it stands in. */
	if (recording < 0 || setsid() < 0 || chdir("/") < 0)
		_exit(1);
	serve_all(recording, directory, parent);
	_exit(0);
}

void opener_begin(const char *directory, const bool *is_there)
{
	pid_t parent = getpid();
	int listener;

	if (geteuid() != 0 || !choose_secret())
		return;
	listener = listen_to_all();
	if (listener < 0)
		return;
	opener = fork();
	if (opener == 0)
		be_opener(listener, directory, is_there, parent);
	close(listener);
}

const char *opener_secret(void)
{
	return opener > 0 ? secret : NULL;
}

void opener_end(const char *directory)
{
	if (opener <= 0 || is_needed(directory))
		return;
	kill(opener, SIGKILL);
	waitpid(opener, NULL, 0);
	opener = -1;
}
