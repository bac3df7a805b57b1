// Memory in pages of 2 MiB.
#pragma once

#include <cstdlib>

namespace braid {

// Lets LibTorch request huge pages for tensors from 2 MiB on, where the system grants them on
// request (transparent_hugepage/enabled: madvise or always): a page fault per 4 KiB of a result
// takes about as long as filling it. Call it before the first tensor; a variable already set
// prevails.
inline void take_huge_pages() { ::setenv("THP_MEM_ALLOC_ENABLE", "1", /*overwrite=*/0); }

}  // namespace braid
