/*
 * Answers depend on the code, on constant data (tables of distances), on addresses of code in
 * other data, on the functions that are asked for, and on the parts of the code.  The name of
 * a file is a hash of all these, and of the identity of the image's file, which tells more
 * objects apart.  A linker may give a new file the identity of the one that it replaces.
 *
 * A file is never changed.  One that is not complete has another size, or another hash; it
 * stays if its process is killed, and then all others decode.
 */
#define _GNU_SOURCE
#include "sources/decoded.h"

#include "image/image.h"
#include "inspect/decode/decode.h"
#include "os/segments.h"
#include "os/sys.h"
#include "os/text.h"
#include "os/trust.h"
#include "runtime/record.h"
#include "runtime/state.h"

#include <errno.h>
#include <fcntl.h>
#include <shim/format.h>

#include <shim/banned.h>

#define LANES	   4
#define MULTIPLIER 0x9e3779b97f4a7c15

/* --- hashes --- */

struct hash {
	uint64_t lanes[LANES];
};

static void add(uint64_t *lane, uint64_t word)
{
	*lane = (*lane ^ word) * MULTIPLIER;
	*lane ^= *lane >> 32;
}

/* The lanes are independent: the processor multiplies them at the same time. */
static void add_bytes(struct hash *hash, const unsigned char *bytes,
		      size_t size)
{
	uint64_t words[LANES];
	size_t at = 0;

	for (; size - at >= sizeof(words); at += sizeof(words)) {
		__builtin_memcpy(words, bytes + at, sizeof(words));
		for (unsigned i = 0; i < LANES; i++)
			add(&hash->lanes[i], words[i]);
	}
	for (; at < size; at++)
		add(&hash->lanes[at % LANES], bytes[at]);
	add(&hash->lanes[0], size);
}

static uint64_t sum_of(const struct hash *hash)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < LANES; i++)
		add(&sum, hash->lanes[i]);
	return sum;
}

/* --- the key --- */

/* The addresses of code among data that is not the same in each process, as the decoder
 * looks for them (note_pointers). */
static void add_addresses(struct hash *hash,
			  const struct decode_entries *question, uintptr_t at,
			  size_t size)
{
	for (uintptr_t end = at + size; at + 8 <= end; at += 4) {
		uint64_t word;

		__builtin_memcpy(&word, question->copy + at, sizeof(word));
		if (word - question->text >=
		    question->text_end - question->text)
			continue;
		add(&hash->lanes[0], at);
		add(&hash->lanes[1], word - question->start);
	}
}

static void add_data(struct hash *hash, const struct image_entry *image,
		     const struct decode_entries *question)
{
	struct segments segments = segments_at(question->start, sys_peek);
	uintptr_t size = question->end - question->start;
	Elf64_Phdr part;

	while (segments_next(&segments, &part)) {
		uintptr_t at = image->bias + part.p_vaddr - question->start;

		if (part.p_type != PT_LOAD || at > size ||
		    part.p_filesz > size - at)
			continue;
		if (part.p_flags & PF_W)
			add_addresses(hash, question, at & ~(uintptr_t)3,
				      part.p_filesz + (at & 3));
		else
			add_bytes(hash, question->copy + at, part.p_filesz);
	}
}

static void add_question(struct hash *hash,
			 const struct decode_entries *question)
{
	for (uint32_t i = 0; i < question->count; i++) {
		const struct decode_entry *entry = &question->entries[i];

		add(&hash->lanes[0], entry->start - question->start);
		add(&hash->lanes[1], entry->end - question->start);
		add(&hash->lanes[2], entry->reason);
	}
	for (uint32_t i = 0; i < question->part_count; i++) {
		const struct decode_part *part = &question->parts[i];

		add(&hash->lanes[0], part->start - question->start);
		add(&hash->lanes[1], part->end - question->start);
		add(&hash->lanes[2],
		    (uint64_t)part->owner << 1 | part->is_piece);
	}
	add(&hash->lanes[3], question->count);
}

static int open_directory(void)
{
	int recording = record_open_shared(), fd;

	if (recording < 0)
		return recording;
	fd = sys_open_at(recording, SHIM_DECODED_DIRECTORY,
			 O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	sys_close(recording);
	return fd;
}

decoded_key decoded_key_of(const struct image_entry *image,
			   const struct decode_entries *question)
{
	struct hash hash = { { image->device, image->inode } };
	int fd = open_directory();

	ASSERT_LOCKED();
	if (fd < 0)
		return 0;
	sys_close(fd);
	add_bytes(&hash, image->build_id, image->build_id_size);
	add_data(&hash, image, question);
	add_question(&hash, question);
	return sum_of(&hash);
}

/* --- the files --- */

struct answer {
	uint8_t reason, skip, length, may_leave;
};

struct file {
	decoded_key key;
	uint64_t sum; /* of the answers */
	struct answer answers[];
};

static size_t size_of(const struct decode_entries *question)
{
	return sizeof(struct file) + question->count * sizeof(struct answer);
}

static uint64_t sum_of_answers(const struct file *file, uint32_t count)
{
	struct hash hash = { { 0 } };

	add_bytes(&hash, (const unsigned char *)file->answers,
		  count * sizeof(struct answer));
	return sum_of(&hash);
}

static void put_name(decoded_key key, char name[24])
{
	struct text text;

	text_init(&text, name, 24);
	text_add_number(&text, key);
}

static int open_to_read(decoded_key key)
{
	int directory = open_directory(), fd;
	char name[24];

	if (directory < 0)
		return directory;
	put_name(key, name);
	fd = sys_open_at(directory, name,
			 O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
	sys_close(directory);
	return fd;
}

static bool is_own_of_size(int fd, size_t size)
{
	struct sys_status status;

	return sys_get_status(fd, &status) == 0 && trust_own(&status) == 0 &&
	       trust_file(&status) == 0 && status.size == size;
}

static bool read_all(int fd, void *memory, size_t size)
{
	for (size_t done = 0; done < size;) {
		long r = sys_read(fd, (char *)memory + done, size - done);

		if (r <= 0)
			return false;
		done += (size_t)r;
	}
	return true;
}

static bool is_possible(const struct decode_entry *entry,
			const struct answer *answer)
{
	return answer->reason < DECODE_ENTRY_REASONS &&
	       (uintptr_t)answer->skip + answer->length <=
		       entry->end - entry->start &&
	       answer->may_leave <= 1;
}

static bool take(const struct file *file, const struct decode_entries *question)
{
	for (uint32_t i = 0; i < question->count; i++)
		if (!is_possible(&question->entries[i], &file->answers[i]))
			return false;
	for (uint32_t i = 0; i < question->count; i++) {
		question->entries[i].reason = file->answers[i].reason;
		question->entries[i].skip = file->answers[i].skip;
		question->entries[i].length = file->answers[i].length;
		question->entries[i].may_leave = file->answers[i].may_leave;
	}
	return true;
}

bool decoded_read(decoded_key key, const struct decode_entries *question)
{
	const size_t size = size_of(question);
	int fd = key ? open_to_read(key) : -ENOENT;
	struct file *file;
	bool is_taken = false;
	void *memory;

	if (fd < 0)
		return false;
	if (is_own_of_size(fd, size) && sys_map(size, &memory) == 0) {
		file = memory;
		is_taken = read_all(fd, file, size) && file->key == key &&
			   file->sum == sum_of_answers(file, question->count) &&
			   take(file, question);
		sys_unmap(memory, size);
	}
	sys_close(fd);
	return is_taken;
}

static void fill(struct file *file, decoded_key key,
		 const struct decode_entries *question)
{
	for (uint32_t i = 0; i < question->count; i++) {
		const struct decode_entry *entry = &question->entries[i];

		file->answers[i] = (struct answer){ entry->reason, entry->skip,
						    entry->length,
						    entry->may_leave };
	}
	file->key = key;
	file->sum = sum_of_answers(file, question->count);
}

/* Where the disk is full, the recording needs the space more. */
static void write_new(decoded_key key, const struct file *file, size_t size)
{
	int directory = open_directory(), fd;
	char name[24];

	if (directory < 0)
		return;
	put_name(key, name);
	fd = sys_open_at(directory, name,
			 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			 0600);
	if (fd >= 0) {
		if (sys_write_all(fd, file, size) < 0)
			sys_remove_at(directory, name);
		sys_close(fd);
	}
	sys_close(directory);
}

void decoded_write(decoded_key key, const struct decode_entries *question)
{
	const size_t size = size_of(question);
	void *memory;

	if (!key || sys_map(size, &memory) < 0)
		return;
	fill(memory, key, question);
	write_new(key, memory, size);
	sys_unmap(memory, size);
}
