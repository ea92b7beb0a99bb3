#define APPROXIMATIONS approximations_avx2
#define FILTERS filters_avx2
#include "approximate_body.h"
