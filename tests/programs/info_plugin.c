/* A library that is loaded and unloaded. */
int plugin_function(int value);
int plugin_function(int value)
{
	return value * 5;
}
