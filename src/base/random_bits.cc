#include "base/random_bits.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace braid {

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  const bool is_filled = ::getrandom(&bits, sizeof bits, 0) == ssize_t(sizeof bits);
  check(is_filled, "the system has no random numbers: ", std::strerror(errno));
  return bits;
}

}  // namespace braid
