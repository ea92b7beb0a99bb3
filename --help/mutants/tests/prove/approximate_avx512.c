#define APPROXIMATIONS approximations_avx512
#define FILTERS filters_avx512
#include "approximate_body.h"
