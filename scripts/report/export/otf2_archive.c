/*
 * An OTF2 archive: files, errors and strings.  The library writes definitions and
 * events to its files as its buffers fill, so memory does not grow with a trace.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <otf2/otf2.h>

#include "base/directory.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/text.h"
#include "export/otf2_archive.h"

/* The name that Score-P uses. */
#define ARCHIVE_NAME "traces"

/* The library prints messages of its own otherwise. */
static OTF2_ErrorCode keep_quiet(void *data, const char *file, uint64_t line,
				 const char *function, OTF2_ErrorCode code,
				 const char *format, va_list values)
{
	(void)data;
	(void)file;
	(void)line;
	(void)function;
	(void)format;
	(void)values;
	return code;
}

static OTF2_FlushType always_flush(void *data, OTF2_FileType type,
				   OTF2_LocationRef location, void *writer,
				   bool is_last)
{
	(void)data;
	(void)type;
	(void)location;
	(void)writer;
	(void)is_last;
	return OTF2_FLUSH;
}

/*
 * The library's own memory would grow to 128 MiB for each location before it
 * writes.  A writer that gets no further chunk writes what it has, and frees its
 * chunks.
 */
#define CHUNKS_MAX 2

struct chunks {
	uint32_t count;
	void *all[CHUNKS_MAX];
};

static void *allocate_chunk(void *data, OTF2_FileType type,
			    OTF2_LocationRef location, void **of_writer,
			    uint64_t size)
{
	struct chunks *chunks = *of_writer;

	(void)data;
	(void)type;
	(void)location;
	if (!chunks)
		*of_writer = chunks = allocate(1, sizeof(*chunks));
	if (chunks->count == CHUNKS_MAX)
		return NULL;
	chunks->all[chunks->count] = grow(NULL, size, 1);
	return chunks->all[chunks->count++];
}

static void free_chunks(void *data, OTF2_FileType type,
			OTF2_LocationRef location, void **of_writer,
			bool is_last)
{
	struct chunks *chunks = *of_writer;

	(void)data;
	(void)type;
	(void)location;
	while (chunks && chunks->count)
		free(chunks->all[--chunks->count]);
	if (is_last) {
		free(chunks);
		*of_writer = NULL;
	}
}

_Noreturn void otf2_give_up(const struct otf2_archive *archive)
{
	directory_give_up(archive->path);
}

void otf2_check(const struct otf2_archive *archive, OTF2_ErrorCode code)
{
	int error = errno;

	if (code == OTF2_SUCCESS)
		return;
	warn("%s: OTF2: %s", archive->path, OTF2_Error_GetDescription(code));
	errno = error ? error : EIO;
	otf2_give_up(archive);
}

void otf2_archive_begin(struct otf2_archive *archive, const char *path)
{
	static const OTF2_FlushCallbacks flush = {
		.otf2_pre_flush = always_flush
	};
	static const OTF2_MemoryCallbacks memory = {
		.otf2_allocate = allocate_chunk, .otf2_free_all = free_chunks
	};

	*archive = (struct otf2_archive){ .path = path };
	OTF2_Error_RegisterCallback(keep_quiet, NULL);
	errno = 0;
	archive->archive = OTF2_Archive_Open(
		path, ARCHIVE_NAME, OTF2_FILEMODE_WRITE, OTF2_CHUNK_SIZE_MIN,
		OTF2_CHUNK_SIZE_DEFINITIONS_DEFAULT, OTF2_SUBSTRATE_POSIX,
		OTF2_COMPRESSION_NONE);
	if (!archive->archive)
		otf2_give_up(archive);
	otf2_check(archive, OTF2_Archive_SetFlushCallbacks(archive->archive,
							   &flush, NULL));
	otf2_check(archive, OTF2_Archive_SetMemoryCallbacks(archive->archive,
							    &memory, NULL));
	otf2_check(archive,
		   OTF2_Archive_SetSerialCollectiveCallbacks(archive->archive));
	otf2_check(archive, OTF2_Archive_SetCreator(archive->archive,
						    "shim " SHIM_VERSION));
	otf2_check(archive, OTF2_Archive_OpenEvtFiles(archive->archive));
	archive->definitions = OTF2_Archive_GetGlobalDefWriter(
		archive->archive);
	archive->markers = OTF2_Archive_GetMarkerWriter(archive->archive);
	if (!archive->definitions || !archive->markers)
		otf2_give_up(archive);
	archive->recent = allocate(RECENT_TEXTS, sizeof(*archive->recent));
	otf2_text(archive, ""); /* has to be number 0 */
}

/* Each location has a file of definitions of its own; ours are all global. */
static void end_definitions(struct otf2_archive *archive, uint64_t locations)
{
	OTF2_DefWriter *writer;
	uint64_t i;

	otf2_check(archive, OTF2_Archive_OpenDefFiles(archive->archive));
	for (i = 0; i < locations; i++) {
		writer = OTF2_Archive_GetDefWriter(archive->archive, i);
		if (!writer)
			otf2_give_up(archive);
		otf2_check(archive, OTF2_Archive_CloseDefWriter(
					    archive->archive, writer));
	}
	otf2_check(archive, OTF2_Archive_CloseDefFiles(archive->archive));
}

void otf2_archive_end(struct otf2_archive *archive, uint64_t locations)
{
	uint32_t i;

	otf2_check(archive, OTF2_Archive_CloseEvtFiles(archive->archive));
	end_definitions(archive, locations);
	otf2_check(archive, OTF2_Archive_CloseMarkerWriter(archive->archive,
							   archive->markers));
	otf2_check(archive, OTF2_Archive_CloseGlobalDefWriter(
				    archive->archive, archive->definitions));
	otf2_check(archive, OTF2_Archive_Close(archive->archive));
	for (i = 0; i < RECENT_TEXTS; i++)
		free(archive->recent[i].text);
	free(archive->recent);
	free(archive->numbers);
	names_free(&archive->texts);
}

/* Strings have to be UTF-8. */
static OTF2_StringRef define(struct otf2_archive *archive, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		die("out of memory");
	make_harmless(copy);
	otf2_check(archive,
		   OTF2_GlobalDefWriter_WriteString(archive->definitions,
						    archive->text_count, copy));
	free(copy);
	return archive->text_count++;
}

OTF2_StringRef otf2_text(struct otf2_archive *archive, const char *text)
{
	uint32_t count = archive->texts.count;
	uint32_t at = names_keep(&archive->texts, text);

	if (at == count) {
		GROW(archive->numbers, count, archive->number_room);
		archive->numbers[at] = define(archive, text);
	}
	return archive->numbers[at];
}

static uint64_t hash_text(const char *text)
{
	uint64_t key = 0;

	for (; *text; text++)
		key = key * 31 + (unsigned char)*text;
	return hash_mix(key);
}

OTF2_StringRef otf2_passing_text(struct otf2_archive *archive, const char *text)
{
	size_t size = strlen(text) + 1;
	struct recent_text *recent =
		&archive->recent[hash_text(text) % RECENT_TEXTS];

	if (recent->text && !strcmp(recent->text, text))
		return recent->number;
	if (size > recent->room) {
		recent->room = size;
		recent->text = grow(recent->text, size, 1);
	}
	memcpy(recent->text, text, size);
	recent->number = define(archive, text);
	return recent->number;
}
