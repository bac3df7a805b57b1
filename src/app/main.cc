// The program `braid-engine`.
#include <cstdlib>

#include "app/engine_main.h"

int main(int argc, char** argv) {
  // Not exit(): it would run LibTorch's static destructors, 0.15 s spent on what process exit frees
  // anyway.
  std::_Exit(braid::engine_main(argc, argv));
}
