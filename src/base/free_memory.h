#pragma once

namespace braid {

// Returns freed memory to the system. The C library keeps what lies between blocks in use, several
// hundred megabytes after blocks of many sizes.
void give_back_free_memory();

}  // namespace braid
