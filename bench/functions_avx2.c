#define FUNCTIONS functions_avx2
#include "functions_body.h"
