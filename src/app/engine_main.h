// The whole program after LibTorch is loaded.
#pragma once

namespace braid {

// Returns the exit code. For a process with nothing else to do: it takes over signals and the
// standard descriptors. Flushes everything.
int engine_main(int argc, char** argv);

}  // namespace braid
