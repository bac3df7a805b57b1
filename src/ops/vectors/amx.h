// Tiles of Intel AMX: palette 1, eight tiles of 16 rows of 64 bytes.
#pragma once

#include <immintrin.h>
