/* A library that comes and goes. */
int plugin_function(int value);
int plugin_function(int value)
{
	return value * 5;
}
