/* The header alone, as C99 and as C++11, and each of its parts alone. */
#include MLXC_HEADER

int main(void)
{
    return 0;
}
