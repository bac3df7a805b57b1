// All of `braid` once LibTorch is loaded.
#pragma once

namespace braid {

// Returns the exit code. For a process that has nothing else to do: it takes over signals and the
// standard files. Nothing is left in buffers.
int engine_main(int argc, char** argv);

}  // namespace braid
