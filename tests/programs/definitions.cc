#include "definitions.h"

namespace outer {
class Common { public: long a; struct Part { char c; enum Kind { ONE } kind; } part; };
enum class Color : int { RED };
namespace inner {
union Number { int i; float f; };
template <class T> struct Box { T value; };
}
}

outer::Common common;
outer::Color color;
outer::inner::Number number;
outer::inner::Box<outer::Both> box;
outer::Common::Part::Kind kind;
