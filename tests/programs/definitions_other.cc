#include "definitions.h"

class Alone { public: double d; };

outer::Common *common_pointer;
outer::Color *color_pointer;
outer::inner::Number *number_pointer;
outer::inner::Box<outer::Both> *box_pointer;
outer::Both both;
Alone alone;

int main()
{
	return both.a;
}
