/*
 * Executes a program ("refuses_code [-w] PROGRAM [WORD...]") where memory cannot be made
 * executable later, not even by a file without a name, as SELinux may have it; -w: where
 * it cannot be made writable.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES)
#define ALLOW  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int count, char **words)
{
	bool writable = count > 2 && strcmp(words[1], "-w") == 0;
	struct sock_filter steps[] = {
		LOAD(nr),
		/* Files that may be executed have a name, and are not made here. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			 writable ? ~0u : SYS_memfd_create, 3, 0),
		/* mprotect with this bit */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		LOAD(args[2]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
			 writable ? PROT_WRITE : PROT_EXEC, 0, 1),
		REFUSE,
		ALLOW,
	};
	struct sock_fprog program = { sizeof(steps) / sizeof(*steps), steps };

	if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return 1;
	words += 1 + writable;
	execv(words[0], words);
	return 127;
}
