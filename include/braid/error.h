// Exceptions thrown by Braid. The message is one sentence: the thing, the wish, the fact.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#define BRAID_API __attribute__((visibility("default")))
#define BRAID_INTERNAL __attribute__((visibility("hidden")))

namespace braid {

// Vectors and strings cross this interface, so a program has to lay them out as libbraid.so and its
// LibTorch do.
static_assert(sizeof(std::vector<int>) == 3 * sizeof(int*),
              "libbraid.so is compiled without _GLIBCXX_DEBUG: _GLIBCXX_ASSERTIONS goes with it");
static_assert(sizeof(std::string) == 32,
              "libbraid.so is compiled with libstdc++ and _GLIBCXX_USE_CXX11_ABI=1");

// Something failed while running: a full disk, a device out of memory.
class BRAID_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller passed something unusable (a file, a flag, a prompt). Nothing was changed.
class BRAID_API InputError : public Error {
 public:
  using Error::Error;
};

// The caller's stop token asked to stop.
class BRAID_API Cancelled : public Error {
 public:
  using Error::Error;
};

}  // namespace braid
