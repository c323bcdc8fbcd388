/*
 * The same for C++: types that are addresses there, and classes of the library.
 */
#include "truth.h"

#include <string>
#include <vector>
#if __cplusplus >= 201703L
#include <optional>
#endif

struct Point {
	int x, y;
	int sum() const;
};

#define ENTRY APART __attribute__((used))
#define USE(value) __asm__ volatile("" : : "r"(&(value)) : "memory")

ENTRY int Point::sum() const
{
	return x + y;
}

ENTRY void reference(int &value)
{
	value++;
}

ENTRY void object(const Point &value)
{
	USE(value);
}

ENTRY void text(std::string value)
{
	USE(value);
}

ENTRY void list(const std::vector<int> &value)
{
	USE(value);
}

ENTRY void field(int Point::*value)
{
	USE(value);
}

ENTRY void method(int (Point::*value)() const)
{
	USE(value);
}

ENTRY void pair(Point value)
{
	USE(value);
}

#if __cplusplus >= 201703L
ENTRY void maybe(std::optional<int> value)
{
	USE(value);
}
#endif

QUIET int main()
{
	int number = 41;
	Point point = { 3, 4 };
	std::string changed = "before";

	reference(number);
	object(point);
	point.sum();
	text(changed);
	list({ 1, 2 });
	field(&Point::y);
	method(&Point::sum);
	pair(point);
#if __cplusplus >= 201703L
	maybe(7);
	maybe(std::nullopt);
#endif
	return number - 42;
}
