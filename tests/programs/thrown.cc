/*
 * A program that counts its own exceptions: thrown CASE.  It prints, for each type and
 * each pair of functions, "thrown TYPE IN N" and "caught TYPE IN BY N".
 */
#include "truth.h"

#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <map>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <vector>

namespace app
{
struct Error : std::runtime_error {
	using std::runtime_error::runtime_error;
};
template <typename T> struct Box {
	T value;
};
}

/* The name of its type begins with a *. */
namespace
{
struct Hidden {
};
}

extern "C" {
void thrower(int kind);
void deep(int kind);
void catcher(int kind, int times);
void outer(int kind, int times);
void rethrower(int kind);
void swallower(int kind, int times);
}

/* --- its own counts --- */

static std::mutex truths_lock;
static std::map<std::string, long> *truths;

QUIET static void know(const std::string &what)
{
	std::lock_guard<std::mutex> hold(truths_lock);

	if (!truths)
		truths = new std::map<std::string, long>;
	(*truths)[what]++;
}

QUIET static void say()
{
	for (auto &truth : *truths) {
		std::string line = truth.first + " " +
				   std::to_string(truth.second) + "\n";

		print_text(line.c_str());
	}
}

static const char *const names[] = { "int", "std::runtime_error",
				     "app::Error", "app::Box<long>",
				     "(anonymous namespace)::Hidden" };

/* --- throwing --- */

APART void thrower(int kind)
{
	know(std::string("thrown ") + names[kind] + " thrower");
	switch (kind) {
	case 0:
		throw 1;
	case 1:
		throw std::runtime_error("one");
	case 2:
		throw app::Error("two");
	case 3:
		throw app::Box<long>{ 3 };
	default:
		throw Hidden();
	}
}

APART void deep(int kind)
{
	thrower(kind);
}

APART void catcher(int kind, int times)
{
	for (int i = 0; i < times; i++)
		try {
			deep(kind);
		} catch (...) {
			know(std::string("caught ") + names[kind] +
			     " thrower catcher");
		}
}

APART void rethrower(int kind)
{
	try {
		deep(kind);
	} catch (...) {
		know(std::string("caught ") + names[kind] +
		     " thrower rethrower");
		know(std::string("thrown ") + names[kind] + " rethrower");
		throw;
	}
}

APART void outer(int kind, int times)
{
	for (int i = 0; i < times; i++)
		try {
			rethrower(kind);
		} catch (...) {
			know(std::string("caught ") + names[kind] +
			     " rethrower outer");
		}
}

static void kinds()
{
	for (int kind = 0; kind < 5; kind++)
		catcher(kind, 10 * (kind + 1));
	outer(2, 7);
}

static void threads()
{
	std::vector<std::thread> all;

	for (int i = 0; i < 4; i++)
		all.emplace_back([] {
			catcher(1, 2500);
			outer(0, 500);
		});
	for (auto &thread : all)
		thread.join();
}

/* During unwinding, a destructor throws another exception and catches it. */
struct Nest {
	APART ~Nest()
	{
		catcher(1, 1);
	}
};

APART static void with_nest()
{
	Nest nest;

	deep(2);
}

static void nested()
{
	for (int i = 0; i < 20; i++)
		try {
			with_nest();
		} catch (app::Error &) {
			know("caught app::Error thrower nested");
		}
}

/* Another thread catches an exception of this thread: the throwing function is unknown
 * there. */
APART static void taker(std::exception_ptr what)
{
	try {
		std::rethrow_exception(what);
	} catch (...) {
		know("caught ? ? taker");
	}
}

static void handed()
{
	std::exception_ptr what;

	try {
		deep(1);
	} catch (...) {
		know("caught std::runtime_error thrower handed");
		what = std::current_exception();
	}
	std::thread(taker, what).join();
	taker(what);
}

static void forked()
{
	catcher(0, 3);
	if (fork() == 0) {
		truths->clear();
		catcher(2, 5);
		say();
		_exit(0);
	}
	wait(nullptr);
}

static void uncaught()
{
	std::set_terminate([] {
		say();
		_exit(3);
	});
	catcher(1, 2);
	deep(2);
}

static void killed()
{
	catcher(3, 12);
	say();
	kill(getpid(), SIGKILL);
}

/* This is no C++ exception: the end of a thread passes all handlers that catch
 * everything. */
APART static void ends()
{
	try {
		pthread_exit(nullptr);
	} catch (...) {
		know("caught ? ? ends");
		know("thrown ? ends");
		throw;
	}
}

static void ending()
{
	std::thread(ends).join();
	catcher(0, 1);
}

/* Types of libraries that are loaded where another one was. */
static void libraries()
{
	for (const char *name : { getenv("FIRST"), getenv("SECOND") }) {
		void *library = dlopen(name, RTLD_NOW);
		void (*call)() = (void (*)())dlsym(library, "throws");

		try {
			call();
		} catch (...) {
		}
		dlclose(library);
	}
}

static const struct {
	const char *name;
	void (*run)();
} cases[] = {
	{ "kinds", kinds },	  { "threads", threads }, { "nested", nested },
	{ "handed", handed },	  { "forked", forked },	  { "killed", killed },
	{ "uncaught", uncaught }, { "ending", ending },
	{ "libraries", libraries },
};

int main(int count, char **arguments)
{
	for (auto &one : cases)
		if (count > 1 && !strcmp(one.name, arguments[1])) {
			one.run();
			if (truths)
				say();
			return 0;
		}
	return 2;
}
