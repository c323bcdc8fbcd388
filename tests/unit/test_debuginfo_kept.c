/*
 * Files with debug information that are kept, and what is read of them.
 */
#define _GNU_SOURCE
#include "debuginfo_files.h"

TestSuite(debuginfo_kept, .init = make_directory, .fini = remove_directory);

/* --- kept files --- */

Test(debuginfo_kept, four_files_are_kept_and_the_oldest_goes)
{
	Dwarf *of[7];
	static const char *const names[] = {
		"0", "1", "2", "3", "4", "5", "6"
	};

	for (unsigned i = 0; i < 7; i++)
		make(names[i],
		     (struct contents){ .id = ID, .info = ".debug_info" });
	for (unsigned i = 1; i < 5; i++)
		of[i] = ask_for(i, names[i]);
	/* From now on none can be read again. */
	for (unsigned i = 0; i < 5; i++)
		cr_assert(eq(int, unlink(in(names[i])), 0));
	for (unsigned i = 4; i > 0; i--)
		cr_assert(eq(ptr, ask_for(i, names[i]), of[i]));
	of[5] = ask_for(5, "5"); /* for the fourth */
	cr_assert(eq(ptr, ask_for(4, "4"), NULL));
	for (unsigned i = 1; i < 4; i++)
		cr_assert(eq(ptr, ask_for(i, names[i]), of[i]));
	of[6] = ask_for(6, "6"); /* for the fifth */
	cr_assert(of[6] != NULL);
	for (unsigned i = 1; i < 4; i++)
		cr_assert(eq(ptr, ask_for(i, names[i]), of[i]));
	cr_assert(eq(ptr, ask_for(6, "6"), of[6]));
	cr_assert(eq(ptr, ask_for(5, "none"), NULL));
}

Test(debuginfo_kept, the_trouble_of_a_file_is_told_once)
{
	cr_assert(eq(ptr, ask_for(1, "none"), NULL));
	cr_assert(answer.trouble != NULL);
	make("none", (struct contents){ .id = ID, .info = ".debug_info" });
	cr_assert(eq(ptr, ask_for(1, "none"), NULL));
	cr_assert(eq(ptr, (void *)(uintptr_t)answer.trouble, NULL));
}

Test(debuginfo_kept, the_last_256_images_without_a_file_are_remembered)
{
	for (unsigned i = 1; i <= 256; i++) {
		cr_assert(eq(ptr, ask_for(i, "none"), NULL));
		cr_assert(answer.trouble != NULL);
	}
	for (unsigned i = 1; i <= 256; i++) {
		cr_assert(eq(ptr, ask_for(i, "none"), NULL));
		cr_assert(eq(ptr, (void *)(uintptr_t)answer.trouble, NULL));
	}
	cr_assert(eq(ptr, ask_for(257, "none"), NULL));
	cr_assert(eq(ptr, ask_for(258, "none"), NULL));
	for (unsigned i = 3; i <= 258; i++) {
		cr_assert(eq(ptr, ask_for(i, "none"), NULL));
		cr_assert(eq(ptr, (void *)(uintptr_t)answer.trouble, NULL));
	}
	cr_assert(eq(ptr, ask_for(1, "none"), NULL));
	cr_assert(answer.trouble != NULL);
}

Test(debuginfo_kept, a_file_that_lacked_memory_is_tried_again)
{
	lacks_memory = true;
	cr_assert(eq(ptr, ask_for(1, "none"), NULL));
	cr_assert(eq(ptr, (void *)(uintptr_t)answer.trouble, NULL));
	lacks_memory = false;
	make("none", (struct contents){ .id = ID, .info = ".debug_info" });
	cr_assert(ask_for(1, "none") != NULL);
}

Test(debuginfo_kept, a_forgotten_file_is_read_again)
{
	make("a", (struct contents){ .id = ID, .info = ".debug_info" });
	make("b", (struct contents){ .id = ID, .info = ".debug_info" });
	cr_assert(ask_for(1, "a") != NULL);
	cr_assert(ask_for(2, "b") != NULL);
	units_forgotten = all_forgotten = signatures_forgotten = 0;
	file_forget(0);
	file_forget(7);
	cr_assert(eq(uint, units_forgotten, 0));
	file_forget(1);
	cr_assert(eq(uint, units_forgotten, 1));
	cr_assert(eq(uint, all_forgotten, 1));
	cr_assert(eq(uint, signatures_forgotten, 1));
	cr_assert(eq(int, unlink(in("b")), 0));
	cr_assert(ask_for(2, "b") != NULL);
	cr_assert(ask_for(1, "a") != NULL);
	file_forget(1);
	cr_assert(eq(int, unlink(in("a")), 0));
	cr_assert(eq(ptr, ask_for(1, "a"), NULL));
}

Test(debuginfo_kept, an_abandoned_file_is_not_touched_again)
{
	make("a", (struct contents){ .id = ID, .info = ".debug_info" });
	make("b", (struct contents){ .id = ID, .info = ".debug_info" });
	cr_assert(ask_for(1, "a") != NULL);
	cr_assert(ask_for(2, "b") != NULL);
	units_forgotten = all_forgotten = signatures_forgotten = 0;
	file_abandon(0);
	cr_assert(eq(uint, units_forgotten, 1));
	cr_assert(eq(uint, all_forgotten, 1));
	cr_assert(eq(uint, signatures_forgotten, 1));
	cr_assert(ask_for(1, "a") != NULL);
	file_abandon(1);
	cr_assert(eq(ptr, ask_for(1, "a"), NULL));
	cr_assert(eq(ptr, (void *)(uintptr_t)answer.trouble, NULL));
	cr_assert(ask_for(2, "b") != NULL);
	cr_assert(eq(uint, units_forgotten, 2));
}

/* --- other contents --- */

Test(debuginfo_kept, symbols_and_unwind_tables_are_in_memory)
{
	struct debuginfo_question question = question_of(1, "a");
	Elf_Scn *section = NULL;
	unsigned seen = 0;

	cr_assert(eq(ptr, file_elf(&question), NULL));
	make("a", (struct contents){ .id = ID,
				     .info = ".debug_info",
				     .has_frames = true,
				     .has_symbols = true,
				     .padding = 100 });
	cr_assert(ask(question) != NULL);
	cr_assert(file_elf(&question) != NULL);
	while ((section = elf_nextscn(file_elf(&question), section))) {
		GElf_Shdr header;
		GElf_Sym symbol;
		Elf_Data *data;

		gelf_getshdr(section, &header);
		if (header.sh_type == SHT_SYMTAB) {
			data = elf_getdata(section, NULL);
			cr_assert(data != NULL &&
				  gelf_getsym(data, 1, &symbol) != NULL);
			cr_assert(eq(ulong, symbol.st_value, 77));
			seen++;
		} else if (header.sh_size == ELF_FRAMES) {
			data = elf_rawdata(section, NULL);
			cr_assert(data != NULL && data->d_buf != NULL);
			cr_assert(
				eq(int,
				   memcmp(data->d_buf, elf_frames, ELF_FRAMES),
				   0));
			seen++;
		} else if (header.sh_size == 100) {
			/* Others are not read. */
			data = elf_rawdata(section, NULL);
			cr_assert(data == NULL || data->d_buf == NULL);
			seen++;
		}
	}
	cr_assert(eq(uint, seen, 3));
}

static bool has_row(const struct debuginfo_question *question)
{
	Dwarf_Frame *row = NULL;
	Dwarf_CFI *cfi = file_frames(question);

	return cfi && dwarf_cfi_addrframe(cfi, 0x1008, &row) == 0;
}

Test(debuginfo_kept, unwind_tables_are_those_of_the_object_itself)
{
	struct debuginfo_question question = question_of(1, "a");
	unsigned before = open_files();

	cr_assert(eq(ptr, file_frames(&question), NULL));
	make_folders(folder);
	make("usr/lib/debug/.build-id/ab/cdef01.debug",
	     (struct contents){ .id = ID, .info = ".debug_info" });
	make("a", (struct contents){ .id = ID, .has_frames = true });
	cr_assert(ask(question) != NULL);
	cr_assert(file_frames(&question) != NULL);
	cr_assert(has_row(&question));
	cr_assert(eq(ptr, file_frames(&question), file_frames(&question)));
	cr_assert(eq(uint, open_files(), before));
	/* Read once. */
	file_forget(1);
	cr_assert(ask(question) != NULL);
	cr_assert(eq(int, unlink(in("a")), 0));
	cr_assert(not(has_row(&question)));
	make("a", (struct contents){ .id = ID, .has_frames = true });
	cr_assert(not(has_row(&question)));
}

Test(debuginfo_kept, unwind_tables_of_another_object_are_not_read)
{
	struct debuginfo_question question = question_of(1, "a");
	unsigned before = open_files();

	make("a", (struct contents){ .id = ID, .info = ".debug_info" });
	cr_assert(ask(question) != NULL);
	make("other", (struct contents){ .id = { 1, 2, 3, 4 },
					 .id_size = 4,
					 .has_frames = true });
	cr_assert(eq(int, rename(in("other"), in("a")), 0));
	cr_assert(not(has_row(&question)));
	cr_assert(eq(uint, open_files(), before));
	file_forget(1);
}

/* --- units in two files --- */

static bool open_split(struct debuginfo_question question, Dwarf_Die *unit)
{
	Dwarf *dwarf = ask(question);
	size_t header_size;
	Dwarf_Off next;

	cr_assert(dwarf != NULL);
	cr_assert(eq(int,
		     dwarf_next_unit(dwarf, 0, &next, &header_size, NULL, NULL,
				     NULL, NULL, NULL, NULL),
		     0));
	cr_assert(dwarf_offdie(dwarf, question.ranges[0].size, unit) != NULL);
	answer.trouble = NULL;
	return file_open_split(&question, &answer, unit);
}

Test(debuginfo_kept, a_unit_in_one_file_stays_as_it_is)
{
	struct debuginfo_question question = question_of(1, "a");
	Dwarf_Die unit;

	make("a", (struct contents){ .id = ID, .info = ".debug_info" });
	question.ranges[0].size = 11; /* the offset of the unit's entry */
	cr_assert(open_split(question, &unit));
	cr_assert(eq(int, dwarf_tag(&unit), DW_TAG_compile_unit));
	cr_assert(eq(ptr, (void *)(uintptr_t)answer.trouble, NULL));
}

Test(debuginfo_kept, the_other_part_of_a_unit_is_opened)
{
	struct debuginfo_question question = question_of(1, "a");
	Dwarf_Die unit;

	make("a", (struct contents){ .id = ID, .split = in("a.dwo") });
	make("a.dwo", (struct contents){ .dwo = "yes" });
	question.ranges[0].size = 20;
	cr_assert(open_split(question, &unit));
	cr_assert(eq(int, dwarf_tag(&unit), DW_TAG_compile_unit));
	cr_assert(eq(ptr, (void *)(uintptr_t)answer.trouble, NULL));
}

Test(debuginfo_kept, a_missing_part_of_a_unit_is_told_once)
{
	struct debuginfo_question question = question_of(1, "a"),
				  other = question_of(2, "b");
	Dwarf_Die unit;

	make("a", (struct contents){ .id = ID, .split = in("a.dwo") });
	make("b", (struct contents){ .id = ID, .split = in("b.dwo") });
	question.ranges[0].size = other.ranges[0].size = 20;
	cr_assert(not(open_split(question, &unit)));
	cr_assert(answer.trouble != NULL);
	cr_assert(eq(str, (char *)(uintptr_t)answer.trouble,
		     "a .dwo file is missing"));
	cr_assert(not(open_split(question, &unit)));
	cr_assert(eq(ptr, (void *)(uintptr_t)answer.trouble, NULL));
	cr_assert(not(open_split(other, &unit)));
	cr_assert(answer.trouble != NULL);
	/* Without a file there is nobody to tell. */
	question.image = 3;
	answer.trouble = NULL;
	cr_assert(not(file_open_split(&question, &answer, &unit)));
	cr_assert(eq(ptr, (void *)(uintptr_t)answer.trouble, NULL));
}

Test(debuginfo_kept, an_abandoned_file_leaves_its_place)
{
	static const char *const names[] = { "0", "1", "2", "3", "4" };
	Dwarf *of[5];

	for (unsigned i = 0; i < 5; i++) {
		make(names[i],
		     (struct contents){ .id = ID, .info = ".debug_info" });
		if (i == 4)
			file_abandon(1);
		of[i] = ask_for(1 + i, names[i]);
		cr_assert(of[i] != NULL);
	}
	for (unsigned i = 1; i < 5; i++)
		cr_assert(eq(ptr, ask_for(1 + i, names[i]), of[i]));
}
