/* Classes that one unit defines and another unit only declares. */
namespace outer {
class Common;
enum class Color : int;
struct Both { int a; };
namespace inner { union Number; template <class T> struct Box; }
}
class Alone;
