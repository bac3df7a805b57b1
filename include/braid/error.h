// Exceptions thrown by Braid. The message is one sentence: the thing, the wish, the fact.
#pragma once

#include <stdexcept>

#define BRAID_API __attribute__((visibility("default")))

namespace braid {

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
