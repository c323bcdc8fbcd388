/*
 * Which file has the debug information of an image, in ELF files that the test writes:
 * it reads them with the real libdw.
 */
#define _GNU_SOURCE
#include "debuginfo_files.h"

TestSuite(debuginfo_file, .init = make_directory, .fini = remove_directory);

/* A reference for has_checksum(): bit after bit, without a table. */
static uint32_t checksum_of(const char *name)
{
	FILE *file = fopen(in(name), "rb");
	uint32_t sum = ~0u;
	int byte;

	while ((byte = getc(file)) != EOF) {
		sum ^= (uint32_t)byte;
		for (int bit = 0; bit < 8; bit++)
			sum = sum & 1 ? sum >> 1 ^ 0xedb88320u : sum >> 1;
	}
	fclose(file);
	return ~sum;
}

/* With the first bytes of the build ID only. */
static Dwarf *ask_with(uint64_t image, const char *name, uint32_t id_size)
{
	struct debuginfo_question question = question_of(image, name);

	question.build_id_size = id_size;
	return ask(question);
}

/* --- the loaded file --- */

Test(debuginfo_file, the_file_with_the_build_id_is_taken_and_closed)
{
	unsigned before = open_files();

	make("a", (struct contents){ .id = ID, .info = ".debug_info" });
	cr_assert(ask_for(1, "a") != NULL);
	cr_assert(eq(ptr, (void *)(uintptr_t)answer.trouble, NULL));
	cr_assert(eq(uint, open_files(), before));
}

Test(debuginfo_file, another_build_id_is_another_file)
{
	struct debuginfo_question longer = question_of(4, "a");
	unsigned before = open_files();

	make("a", (struct contents){ .id = { 0xab, 0xcd, 0xef, 0x02 },
				     .id_size = 4,
				     .info = ".debug_info" });
	CR_TROUBLE(question_of(1, "a"),
		   "the file differs from the loaded object");
	make("a", (struct contents){ .id = ID, .info = ".debug_info" });
	longer.build_id_size = 5;
	CR_TROUBLE(longer, "the file differs from the loaded object");
	longer.build_id_size = 3;
	longer.image = 5;
	CR_TROUBLE(longer, "the file differs from the loaded object");
	make("a", (struct contents){ .info = ".debug_info" });
	CR_TROUBLE(question_of(2, "a"),
		   "the file differs from the loaded object");
	cr_assert(eq(uint, open_files(), before));
}

Test(debuginfo_file, what_is_no_elf_file_cannot_be_read)
{
	unsigned before = open_files();

	CR_TROUBLE(question_of(1, "none"), "the file cannot be read");
	make_folders("folder");
	CR_TROUBLE(question_of(2, "folder"), "the file cannot be read");
	/* Would wait for a writer. */
	cr_assert(eq(int, mkfifo(in("fifo"), 0600), 0));
	CR_TROUBLE(question_of(3, "fifo"), "the file cannot be read");
	cr_assert(eq(uint, open_files(), before));
}

Test(debuginfo_file, without_a_build_id_device_and_inode_tell)
{
	struct debuginfo_question question = question_of(1, "a");
	struct stat info;

	make("a", (struct contents){ .info = ".debug_info" });
	cr_assert(eq(int, stat(in("a"), &info), 0));
	question.build_id_size = 0;
	question.inode = info.st_ino;
	question.device = (uint64_t)major(info.st_dev) << 32 |
			  minor(info.st_dev);
	cr_assert(ask(question) != NULL);

	question.image = 2;
	question.inode++;
	CR_TROUBLE(question, "the file differs from the loaded object");
	question.image = 3;
	question.inode--;
	question.device++;
	CR_TROUBLE(question, "the file differs from the loaded object");
	question.image = 4;
	question.device += (1ull << 32) - 1;
	CR_TROUBLE(question, "the file differs from the loaded object");
}

Test(debuginfo_file, a_file_without_debug_information_says_so)
{
	unsigned before = open_files();

	make("a", (struct contents){ .id = ID });
	CR_TROUBLE(question_of(1, "a"), "built without -g or stripped");
	make("a", (struct contents){
			  .id = ID, .is_empty = true, .info = ".debug_info" });
	CR_TROUBLE(question_of(2, "a"), "it cannot be read");
	make("a", (struct contents){
			  .id = ID, .is_empty = true, .info = ".zdebug_info" });
	CR_TROUBLE(question_of(3, "a"), "it cannot be read");
	cr_assert(eq(uint, open_files(), before));
}

Test(debuginfo_file, the_running_program_is_read_if_its_name_has_gone)
{
	make("exe", (struct contents){ .id = ID, .info = ".debug_info" });
	cr_assert(ask_for(1, "gone") != NULL);
	cr_assert(eq(str, last_opened, in("exe")));

	/* What is said is about the file that was asked for. */
	make("exe", (struct contents){ .info = ".debug_info" });
	CR_TROUBLE(question_of(2, "gone"), "the file cannot be read");
	make("a", (struct contents){ .id = ID });
	CR_TROUBLE(question_of(3, "a"), "built without -g or stripped");
	make("a", (struct contents){ .id = ID, .link = "nowhere" });
	CR_TROUBLE(question_of(5, "a"), "built without -g or stripped");
	/* The program has been renamed, and its link leads nowhere. */
	make("exe", (struct contents){ .id = ID, .link = "nowhere" });
	CR_TROUBLE(question_of(4, "gone"), "built without -g or stripped");
}

/* --- the system's directory --- */

Test(debuginfo_file, the_systems_file_is_named_by_the_build_id)
{
	unsigned before = open_files();

	make_folders(folder);
	make("a", (struct contents){ .id = ID });
	make("usr/lib/debug/.build-id/ab/cdef01.debug",
	     (struct contents){ .id = ID, .info = ".debug_info" });
	cr_assert(ask_for(1, "a") != NULL);
	make("usr/lib/debug/.build-id/ab/cdef01.debug",
	     (struct contents){ .id = { 1, 2, 3, 4 },
				.id_size = 4,
				.info = ".debug_info" });
	CR_TROUBLE(question_of(2, "a"), "built without -g or stripped");
	cr_assert(eq(uint, open_files(), before));
}

Test(debuginfo_file, build_ids_of_2_to_64_bytes_are_looked_up)
{
	static const uint32_t sizes[] = { 1, 2, 64, 65 };

	make_folders(folder);
	for (uint64_t i = 0; i < 4; i++) {
		struct contents has = { .id_size = sizes[i],
					.info = ".debug_info" };
		struct debuginfo_question question = question_of(i + 1, "none");
		char name[256];
		int length = sprintf(name, "%s/", folder);

		memset(has.id, 0xab, sizes[i]);
		for (uint32_t at = 1; at < sizes[i]; at++)
			length += sprintf(name + length, "ab");
		strcpy(name + length, ".debug");
		make(name, has);
		question.build_id = has.id;
		question.build_id_size = sizes[i];
		cr_assert(eq(int, ask(question) != NULL, i == 1 || i == 2),
			  "%u bytes", sizes[i]);
	}
}

/* --- debug links --- */

Test(debuginfo_file, a_link_leads_to_three_places)
{
	static const char *const places[] = { "dir/a.debug",
					      "dir/.debug/a.debug",
					      "%s/dir/a.debug" };
	char name[256], debug[256];
	unsigned before = open_files();

	make_folders("dir/.debug");
	snprintf(debug, sizeof(debug), "usr/lib/debug%s/dir", directory);
	make_folders(debug);
	make("dir/a", (struct contents){ .id = ID, .link = "a.debug" });
	for (uint64_t i = 0; i < 3; i++) {
		struct contents has = { .id = ID, .info = ".debug_info" };

		snprintf(debug, sizeof(debug), "usr/lib/debug%s", directory);
		snprintf(name, sizeof(name), places[i], debug);
		has.id[0]++;
		make(name, has);
		CR_TROUBLE(question_of(10 + i, "dir/a"),
			   "built without -g or stripped");
		has.id[0]--;
		make(name, has);
		cr_assert(ask_for(1 + i, "dir/a") != NULL, "%s", name);
		cr_assert(eq(str, last_opened, in(name)));
		cr_assert(eq(int, unlink(in(name)), 0));
	}
	cr_assert(eq(uint, open_files(), before));
}

/* Reads 65536 bytes at once. */
Test(debuginfo_file, without_a_build_id_the_checksum_tells)
{
	static const size_t paddings[] = { 0, 65536, 150000 };
	struct debuginfo_question question = question_of(0, "a");
	struct stat info;

	for (unsigned i = 0; i < 3; i++) {
		struct contents linking = { .link = "b" };

		make("b", (struct contents){ .info = ".debug_info",
					     .padding = paddings[i] });
		linking.checksum = checksum_of("b");
		for (unsigned wrong = 0; wrong < 2; wrong++) {
			linking.checksum ^= wrong << 31;
			make("a", linking);
			cr_assert(eq(int, stat(in("a"), &info), 0));
			question.image++;
			question.build_id_size = 0;
			question.inode = info.st_ino;
			question.device = (uint64_t)major(info.st_dev) << 32 |
					  minor(info.st_dev);
			cr_assert(eq(int, ask(question) != NULL, !wrong));
		}
	}
}

Test(debuginfo_file, long_links_and_those_of_other_folders_are_not_followed)
{
	char longest[257];

	make_folders("dir");
	make_folders("other");
	make("other/b", (struct contents){ .id = ID, .info = ".debug_info" });
	make("dir/a", (struct contents){ .id = ID, .link = "../other/b" });
	cr_assert(eq(ptr, ask_for(1, "dir/a"), NULL));

	memset(longest, 'x', 256);
	longest[255] = longest[256] = '\0';
	make("dir/a", (struct contents){ .id = ID, .link = longest });
	make("b", (struct contents){ .id = ID, .info = ".debug_info" });
	/* No file may have this name: the question only says which was opened. */
	CR_TROUBLE(question_of(2, "dir/a"), "built without -g or stripped");
	cr_assert(strlen(last_opened) > 255 &&
		  strcmp(last_opened + strlen(last_opened) - 255, longest) ==
			  0);
	longest[255] = 'x';
	make("dir/a", (struct contents){ .id = ID, .link = longest });
	CR_TROUBLE(question_of(3, "dir/a"), "built without -g or stripped");
	cr_assert(eq(ptr, strstr(last_opened, "xxx"), NULL));
}

Test(debuginfo_file, a_name_without_a_folder_has_no_places_for_links)
{
	struct debuginfo_question question = question_of(1, "a");

	make("exe", (struct contents){ .id = ID, .link = "b" });
	question.path = "none";
	CR_TROUBLE(question, "built without -g or stripped");
}

/* --- the common file of dwz --- */

static bool has_common(Dwarf *dwarf)
{
	Dwarf *common = dwarf_getalt(dwarf);
	Dwarf_Die unit;

	return common && dwarf_offdie(common, 11, &unit) != NULL;
}

Test(debuginfo_file, a_common_file_is_beside_the_file_or_has_a_whole_name)
{
	struct contents has = { .id = ID,
				.info = ".debug_info",
				.common = "c" };
	unsigned before = open_files();

	make_folders("dir");
	make("dir/c", (struct contents){ .id = ID, .info = ".debug_info" });
	make("dir/a", has);
	cr_assert(has_common(ask_for(1, "dir/a")));
	has.common = in("dir/c");
	make("b", has);
	cr_assert(has_common(ask_for(2, "b")));
	make("dir/b", has);
	cr_assert(has_common(ask_for(3, "dir/b")));
	cr_assert(eq(uint, open_files(), before));
}

Test(debuginfo_file, a_common_file_has_the_wanted_build_id)
{
	static const size_t sizes[] = { 4, 3, 0 };
	unsigned before = open_files();

	make("a", (struct contents){
			  .id = ID, .info = ".debug_info", .common = "c" });
	for (unsigned i = 0; i < 3; i++) {
		struct contents common = { .id = ID, .info = ".debug_info" };

		common.id_size = sizes[i];
		common.id[3] += i == 0;
		make("c", common);
		cr_assert(ask_for(1 + i, "a") != NULL);
		cr_assert(not(has_common(ask_for(1 + i, "a"))));
	}
	cr_assert(eq(int, unlink(in("c")), 0));
	cr_assert(ask_for(9, "a") != NULL);
	cr_assert(not(has_common(ask_for(9, "a"))));
	/* Without a link there is none. */
	make("b", (struct contents){ .id = ID, .info = ".debug_info" });
	cr_assert(not(has_common(ask_for(10, "b"))));
	cr_assert(eq(uint, open_files(), before));
}

Test(debuginfo_file, the_systems_common_file_is_named_by_the_build_id)
{
	struct contents has = { .id = ID, .info = ".debug_info" };

	make_folders(folder);
	make("usr/lib/debug/.build-id/ab/cdef01.debug", has);
	has.common = "c";
	make("a", has);
	cr_assert(has_common(ask_for(1, "a")));
	has.id_size = 1;
	make("a", has);
	cr_assert(ask_with(2, "a", 1) != NULL);
	cr_assert(not(has_common(ask_for(2, "a"))));
}
