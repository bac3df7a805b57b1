// Memory in pages of 2 MiB.
#pragma once

#include <cstdlib>

namespace braid {

// Lets LibTorch ask for huge pages for tensors from 2 MiB on, where the system gives them to who
// asks (transparent_hugepage/enabled: madvise or always): a fault for each 4 KiB of a result takes
// about as long as to fill it. Before the first tensor; the variable that is set already prevails.
inline void take_huge_pages() { ::setenv("THP_MEM_ALLOC_ENABLE", "1", /*overwrite=*/0); }

}  // namespace braid
