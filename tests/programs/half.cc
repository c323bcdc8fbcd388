/* A library with much debug information, about one function of which a profiler
 * asks. */
#include <regex>
#include <string>

extern "C" int half(int number);
extern "C" bool is_number(const char *text);

extern "C" int half(int number)
{
	return number / 2;
}

extern "C" bool is_number(const char *text)
{
	return std::regex_match(std::string(text), std::regex("[0-9]+"));
}
