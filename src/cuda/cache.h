int cache_read(const text *key, text *image);
void cache_write(const text *key, const text *image);
