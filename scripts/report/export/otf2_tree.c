/*
 * The system tree of an OTF2 archive: a host is a node, a process a location group, a
 * lane a location.  Locations are defined at the end, when their events are counted.
 */
#include <stdint.h>
#include <stdlib.h>
#include <otf2/otf2.h>

#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "export/lanes.h"
#include "export/otf2.h"
#include "export/otf2_archive.h"
#include "export/otf2_messages.h"
#include "read/process.h"
#include "read/recording.h"

#define NS_PER_SECOND 1000000000

/* The wall-clock time at which the trace's clock was 0. */
static uint64_t real_time(const struct lanes *lanes)
{
	const struct shim_meta *meta = &lanes->recording->processes[0].meta;
	uint64_t start = lanes->trace.start_mono_ns;

	if (!meta->start_real_ns || start > meta->first_mono_ns)
		return OTF2_UNDEFINED_TIMESTAMP;
	return meta->start_real_ns - (meta->first_mono_ns - start);
}

static void define_clock(struct otf2 *otf2)
{
	uint64_t first = UINT64_MAX, last = 0, real = real_time(otf2->lanes);
	uint32_t i;

	for (i = 0; i < otf2->location_count; i++) {
		const struct location *location = &otf2->locations[i];

		if (location->events && location->first_ns < first)
			first = location->first_ns;
		if (location->last_ns > last)
			last = location->last_ns;
	}
	if (first > last)
		first = last;
	check(otf2,
	      OTF2_GlobalDefWriter_WriteClockProperties(
		      otf2->archive.definitions, NS_PER_SECOND, first,
		      last - first + 1,
		      real == OTF2_UNDEFINED_TIMESTAMP ? real : real + first));
}

static void define_node(struct otf2 *otf2, OTF2_SystemTreeNodeRef node,
			const char *name, const char *class,
			OTF2_SystemTreeNodeRef parent,
			OTF2_SystemTreeDomain domain)
{
	OTF2_GlobalDefWriter *definitions = otf2->archive.definitions;

	check(otf2, OTF2_GlobalDefWriter_WriteSystemTreeNode(
			    definitions, node, text_of(otf2, name),
			    text_of(otf2, class), parent));
	check(otf2, OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(
			    definitions, node, domain));
}

/* The node of the host of @process: 0 is the root above the hosts. */
static OTF2_SystemTreeNodeRef host_of(struct otf2 *otf2, struct names *hosts,
				      const struct process *process)
{
	const char *name = process_string(process, "host");
	uint32_t count = hosts->count;
	uint32_t host = names_add(hosts, name ? name : "unknown host");

	if (host == count)
		define_node(otf2, host + 1, hosts->text[host], "node", 0,
			    OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY);
	return host + 1;
}

static void add_property(struct otf2 *otf2, OTF2_LocationGroupRef group,
			 const char *name, const char *value)
{
	OTF2_AttributeValue text = { .stringRef = text_of(otf2, value) };

	check(otf2, OTF2_GlobalDefWriter_WriteLocationGroupProperty(
			    otf2->archive.definitions, group,
			    text_of(otf2, name), OTF2_TYPE_STRING, text));
}

static void define_group(struct otf2 *otf2, uint32_t number,
			 OTF2_LocationGroupRef group, struct names *hosts)
{
	const struct process *process =
		&otf2->lanes->recording->processes[number];
	const char *rank = process_string(process, "rank");
	const char *command = process_string(process, "command");
	OTF2_SystemTreeNodeRef host = host_of(otf2, hosts, process);

	check(otf2,
	      OTF2_GlobalDefWriter_WriteLocationGroup(
		      otf2->archive.definitions, group,
		      text_of(otf2, lanes_process_name(otf2->lanes, number)),
		      OTF2_LOCATION_GROUP_TYPE_PROCESS, host,
		      OTF2_UNDEFINED_LOCATION_GROUP));
	add_property(otf2, group, "pid", keep_format("%u", process->pid));
	if (rank)
		add_property(otf2, group, "rank", rank);
	if (command)
		add_property(otf2, group, "command", command);
}

static void define_unseen(struct otf2 *otf2, OTF2_LocationGroupRef group)
{
	check(otf2, OTF2_GlobalDefWriter_WriteLocationGroup(
			    otf2->archive.definitions, group,
			    text_of(otf2, "no recording"),
			    OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
			    OTF2_UNDEFINED_LOCATION_GROUP));
}

struct ranked {
	uint64_t rank; /* UINT64_MAX: unknown */
	uint32_t process;
};

static int by_rank(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

/* The processes with lanes become location groups, by rank. */
static void define_locations(struct otf2 *otf2, uint32_t unseen)
{
	const struct lanes *lanes = otf2->lanes;
	uint32_t all = lanes->recording->process_count, count = 0, i;
	struct ranked *ranked = allocate(all, sizeof(*ranked));
	uint32_t *groups = allocate(all, sizeof(*groups));
	uint32_t *order;
	struct names hosts = { 0 };

	for (i = 0; i < lanes->lane_count; i++)
		groups[lanes->all[i].process] = 1;
	for (i = 0; i < all; i++) {
		const char *rank = process_string(
			&lanes->recording->processes[i], "rank");

		if (groups[i])
			ranked[count++] = (struct ranked){
				rank ? strtoull(rank, NULL, 10) : UINT64_MAX, i
			};
	}
	qsort(ranked, count, sizeof(*ranked), by_rank);
	define_node(otf2, 0, "machine", "machine",
		    OTF2_UNDEFINED_SYSTEM_TREE_NODE,
		    OTF2_SYSTEM_TREE_DOMAIN_MACHINE);
	for (i = 0; i < count; i++) {
		groups[ranked[i].process] = i;
		define_group(otf2, ranked[i].process, i, &hosts);
	}
	if (unseen != NONE)
		define_unseen(otf2, count);
	for (i = 0; i < otf2->location_count; i++) {
		uint32_t lane = otf2->locations[i].lane;

		check(otf2,
		      OTF2_GlobalDefWriter_WriteLocation(
			      otf2->archive.definitions, i,
			      text_of(otf2, otf2->locations[i].name),
			      OTF2_LOCATION_TYPE_CPU_THREAD,
			      otf2->locations[i].events,
			      lane == NONE ? count :
					     groups[lanes->all[lane].process]));
	}
	order = allocate(count, sizeof(*order));
	for (i = 0; i < count; i++)
		order[i] = ranked[i].process;
	otf2_messages_define(&otf2->messages, order, count, unseen);
	free(order);
	names_free(&hosts);
	free(groups);
	free(ranked);
}

void otf2_define_tree(struct otf2 *otf2, uint32_t unseen)
{
	define_locations(otf2, unseen);
	define_clock(otf2);
}
