// The small model that comes with Braid.
#pragma once

#include <filesystem>

namespace braid {

// PROGRAM/../share/braid/models/demo, in build folders and where Braid is installed.
// Throws InputError when it is not there.
std::filesystem::path bundled_model();

}  // namespace braid
