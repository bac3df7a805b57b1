// The GPU architectures that a build compiles its kernels for. Devices of others run none of them.
#pragma once

#include <string>
#include <string_view>

namespace braid::ops::gpu {

// As CMake lists them, separated by commas: "80-real,90,120", "gfx942,gfx1100". Empty in builds
// without kernels.
std::string compiled_architectures();

// Whether kernels compiled for such a list run on a device, "sm_89" or "gfx1101". True where the
// list does not say, and for the unknown device "".
bool runs_kernels(std::string_view architecture, std::string_view compiled);

// The entry of such a list that a device needs: "89", "gfx1101".
std::string entry_for(std::string_view architecture);

}  // namespace braid::ops::gpu
