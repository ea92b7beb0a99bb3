#include "cuda/text.h"
#include "cuda/cache.h"
int cache_read(const text *key, text *image) { (void)key; (void)image; return 0; }
void cache_write(const text *key, const text *image) { (void)key; (void)image; }
