#include "base/free_memory.h"

#include <malloc.h>

namespace braid {

void give_back_free_memory() { malloc_trim(/*pad=*/0); }

}  // namespace braid
