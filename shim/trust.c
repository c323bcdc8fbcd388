#include "trust.h"

#include "sys.h"

#include <stddef.h>
#include <sys/stat.h>

#include <shim/banned.h>

int trust_own(const struct sys_status *status)
{
	unsigned user;
	int r = sys_user(&user);

	if (r < 0)
		return r;
	if (status->user != user)
		return -TRUST_OWNER;
	return status->mode & (S_IRWXG | S_IRWXO) ? -TRUST_ACCESS : 0;
}

int trust_file(const struct sys_status *status)
{
	if (!S_ISREG(status->mode))
		return -TRUST_KIND;
	return status->links == 1 ? 0 : -TRUST_LINKS;
}

const char *trust_reason(int error)
{
	switch (-error) {
	case TRUST_OWNER: return "it belongs to another user";
	case TRUST_ACCESS: return "other users have access to it (chmod go=)";
	case TRUST_WRITE: return "other users may write it (chmod go-w)";
	case TRUST_REPLACED: return "another one is in its place";
	case TRUST_KIND: return "it is no regular file";
	case TRUST_LINKS: return "it has a second name (a hard link)";
	case TRUST_SHORTENED: return "it was made shorter";
	default: return NULL;
	}
}
