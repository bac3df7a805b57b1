#pragma once

namespace braid {

// Gives memory that was freed back to the system. The C library keeps what lies between blocks in
// use, some hundred megabytes after blocks of many sizes.
void give_back_free_memory();

}  // namespace braid
