/*
 * A std::string whose characters may be in the object itself, with the names and
 * offsets of LLVM's C++ library, which need not be installed.
 */
#include "values.h"

namespace std {
inline namespace __1 {

template <class First, class Second> struct __compressed_pair {
	First __value_;
};

template <class Character> class basic_string {
	struct __long {
		size_t __cap_, __size_;
		Character *__data_;
	};
	struct __short {
		union {
			unsigned char __size_;
			Character __lx;
		};
		Character __data_[23];
	};
	struct __rep {
		union {
			__long __l;
			__short __s;
		};
	};
	__compressed_pair<__rep, int> __r_;

public:
	void set(const Character *text, size_t size)
	{
		__rep &rep = __r_.__value_;

		if (size < sizeof(rep)) {
			rep.__s.__size_ = (unsigned char)(size << 1);
			memcpy(rep.__s.__data_, text, size);
		} else {
			rep.__l.__cap_ = size | 1;
			rep.__l.__size_ = size;
			rep.__l.__data_ = (Character *)text;
		}
	}
};

} // namespace __1
} // namespace std

using String = std::basic_string<char>;

struct Named {
	int number;
	String name;
};

static char text[] = "seventy characters are more than the object has room for and "
		     "are cut!";
static String hollow, brief, full, outside;
static Named named;
static const void *at_brief = &brief, *at_bad = (const void *)0x10;

#define CUT "seventy characters are more than the object has room for and are"

SHOW_AT(hollow, String, &hollow, "", "\"\"", "\"\"")
SHOW_AT(brief, String, &brief, "", "\"sh\\x00rt\"", "\"sh\\u0000rt\"")
SHOW_AT(full, String, &full, "", "\"twenty-two characters.\"",
	"\"twenty-two characters.\"")
SHOW_AT(outside, String, &outside, "", "\"" CUT "\"...",
	"{\"cut\":\"" CUT "\"}")
SHOW_AT(reference, const String &, &at_brief, "", "\"sh\\x00rt\"",
	"\"sh\\u0000rt\"")
SHOW_AT(bad, const String &, &at_bad, "", "0x10 (unreadable)",
	"{\"unreadable\":\"0x10\"}")
SHOW_AT(named, Named, &named, "", "{number = 7, name = \"inner\"}",
	"{\"number\":7,\"name\":\"inner\"}")

static const struct shown *const shown[] = {
	&shown_hollow,	  &shown_brief, &shown_full,  &shown_outside,
	&shown_reference, &shown_bad,	&shown_named,
};

static void show_all(void)
{
	hollow.set("", 0);
	brief.set("sh\0rt", 5);
	full.set("twenty-two characters.", 22);
	outside.set(text, sizeof(text) - 1);
	named.number = 7;
	named.name.set("inner", 5);
	for (const struct shown *one : shown)
		show(one);
	show_refusals((shim_function)take_brief, 0);
	show_two_threads(&shown_brief);
	show_after_fork(&shown_outside);
}
