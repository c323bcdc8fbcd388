/*
 * Queries about the program's code that need a disassembler: how a function ends, and
 * the registers at a call.  libshim-code.so (decode/) answers them; shim opens the
 * library from the directory of libshim.so at the first query.
 */
#define _GNU_SOURCE
#include "inspect/code.h"

#include "image/code_bytes.h"
#include "os/lookup.h"
#include "runtime/log.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <errno.h>
#include <shim/record.h>

#include <shim/banned.h>

#define FILE_NAME "libshim-code.so"

static const struct decode *decode;
static uint32_t begun;

/* --- the decoder --- */

void code_start(void)
{
	const struct decode *found = NULL;
	int before = errno;
	void *library;
	bool ours;

	if (__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL))
		return;
	ours = thread_ours_begins();
	library = lookup_open_beside_us(FILE_NAME);
	thread_ours_ends(ours);
	if (library)
		found = lookup_in(library, DECODE_SYMBOL);
	if (found && found->version == DECODE_VERSION) {
		found->start(code_bytes_restore);
		__atomic_store_n(&decode, found, __ATOMIC_RELEASE);
	} else {
		log_line("%s", FILE_NAME
			 " cannot be used: tail calls will "
			 "look like returns, arguments and results are not "
			 "available");
	}
	NOTIFY(code_forgotten);
	errno = before;
}

/* --- stored answers: a table with open addressing that only grows --- */

struct site {
	uintptr_t address; /* 0: free; written last */
	uintptr_t target;
	const uintptr_t *slot;
	enum code_leave kind;
};

struct sites {
	uint32_t mask, used;
	struct site sites[];
};

static struct sites *sites;

static uint32_t hash(uintptr_t address)
{
	return (uint32_t)((address * 0x9e3779b97f4a7c15ull) >> 40);
}

static const struct site *find_site(const struct sites *in, uintptr_t address)
{
	for (uint32_t i = hash(address); in; i++) {
		const struct site *site = &in->sites[i & in->mask];
		uintptr_t at = __atomic_load_n(&site->address,
					       __ATOMIC_ACQUIRE);

		if (at == address)
			return site;
		if (at == 0)
			break;
	}
	return NULL;
}

static void insert_site(struct sites *in, const struct site *given)
{
	uint32_t i = hash(given->address);

	while (in->sites[i & in->mask].address)
		i++;
	i &= in->mask;
	in->sites[i].target = given->target;
	in->sites[i].slot = given->slot;
	in->sites[i].kind = given->kind;
	__atomic_store_n(&in->sites[i].address, given->address,
			 __ATOMIC_RELEASE);
	in->used++;
}

/* The old table is never freed, because a reader may still use it. */
static void add_site(const struct site *site)
{
	uint32_t room = sites ? sites->mask + 1 : 0;
	struct sites *larger;

	if (!sites || sites->used * 2 >= room) {
		room = room ? room * 2 : 1024;
		larger = shim_memory_map(sizeof(*larger) +
					 room * sizeof(struct site));
		if (!larger)
			return;
		larger->mask = room - 1;
		for (uint32_t i = 0; sites && i <= sites->mask; i++)
			if (sites->sites[i].address)
				insert_site(larger, &sites->sites[i]);
		__atomic_store_n(&sites, larger, __ATOMIC_RELEASE);
	}
	insert_site(sites, site);
}

static int drop_answers(void *unused)
{
	(void)unused;
	if (sites) {
		uint32_t mask = sites->mask;

		shim_memory_discard(sites,
				    sizeof(*sites) +
					    (mask + 1) * sizeof(struct site));
		sites->mask = mask;
	}
	return 0;
}

void code_closed(void)
{
	if (__atomic_load_n(&sites, __ATOMIC_ACQUIRE))
		state_call_locked(drop_answers, NULL);
	NOTIFY(code_forgotten);
}

/* --- queries --- */

struct job {
	const struct plan_call *call;
	struct site site;
};

static int answer_query(void *argument)
{
	static const enum code_leave kinds[] = {
		[DECODE_UNKNOWN] = CODE_DEPENDS,
		[DECODE_DEPENDS] = CODE_DEPENDS,
		[DECODE_RETURN] = CODE_RETURNS,
		[DECODE_TAIL_CALL] = CODE_TAIL_CALLS,
		[DECODE_UNWIND] = CODE_UNWINDS,
	};
	struct job *job = argument;
	const struct site *stored = find_site(sites, job->call->return_address);
	struct decode_question question = {
		.code = job->call->return_address,
		.sp = job->call->frame,
		.site = (uintptr_t)job->call->site,
		.function = job->call->function,
	};
	struct decode_answer answer = { .end = DECODE_UNKNOWN };

	if (stored) {
		job->site = *stored;
		return 0;
	}
	decode->follow(&question, &answer);
	job->site.address = job->call->return_address;
	job->site.kind = kinds[answer.end];
	job->site.target = answer.target;
	job->site.slot = answer.slot;
	add_site(&job->site);
	return 0;
}

enum code_leave code_leave_kind(const struct plan_call *call, uintptr_t *target)
{
	const struct decode *helper = __atomic_load_n(&decode,
						      __ATOMIC_ACQUIRE);
	struct job job = { .call = call };
	const struct site *site;

	*target = 0;
	if (!helper)
		return CODE_DEPENDS;
	site = find_site(__atomic_load_n(&sites, __ATOMIC_ACQUIRE),
			 call->return_address);
	if (!site) {
		state_call_locked(answer_query, &job);
		site = &job.site;
	}
	*target = site->target;
	if (site->slot)
		*target = helper->bound(site->slot);
	return site->kind;
}

bool code_find_arguments(const struct decode_location *location,
			 struct decode_frame *frame,
			 struct decode_places *places)
{
	const struct decode *helper = __atomic_load_n(&decode,
						      __ATOMIC_ACQUIRE);

	ASSERT_LOCKED();
	if (helper && (location->end || location->is_complete))
		helper->arguments(location, frame, places);
	return helper || __atomic_load_n(&begun, __ATOMIC_ACQUIRE);
}

bool code_calls(struct decode_call *call)
{
	const struct decode *helper = __atomic_load_n(&decode,
						      __ATOMIC_ACQUIRE);

	ASSERT_LOCKED();
	return helper && call->end && helper->calls(call);
}

const struct decode *code_decoder(bool *may_come)
{
	const struct decode *helper = __atomic_load_n(&decode,
						      __ATOMIC_ACQUIRE);

	*may_come = !helper && !__atomic_load_n(&begun, __ATOMIC_ACQUIRE);
	return helper;
}

bool code_way(struct decode_way *way)
{
	const struct decode *helper = __atomic_load_n(&decode,
						      __ATOMIC_ACQUIRE);

	ASSERT_LOCKED();
	return helper && way->caller && helper->way(way);
}

bool code_passed(struct decode_passed *passed)
{
	const struct decode *helper = __atomic_load_n(&decode,
						      __ATOMIC_ACQUIRE);

	ASSERT_LOCKED();
	return helper && helper->passed(passed);
}
