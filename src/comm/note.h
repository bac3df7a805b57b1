// What a rank is about to do. Ranks compare notes before bytes move, so that a mismatch is an error
// on all of them and never a hang or a mixture of bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

enum class Op { kAllReduce, kAllGather, kAllToAll, kBroadcast, kShift, kBarrier };

struct Note {
  Op op = Op::kBarrier;
  at::ScalarType dtype = at::kByte;
  std::vector<std::int64_t> shape;  // of what this rank gives
  int detail = 0;                   // the dim of a gather, the root of a broadcast
  std::uint64_t number = 0;         // how many collectives this group has done
  std::string site;                 // file:line of the call

  bool operator==(const Note&) const = default;
};

std::string to_string(const Note& note);

// Flat bytes, for transports between processes.
std::string encode(const Note& note);
Note decode(const std::string& bytes);

// Throws Error unless every rank's note asks for the same: same number, op, dtype and detail, and
// shapes that agree but for the dim of a gather. Names the two ranks and both wishes.
void check_agreement(const std::vector<Note>& notes);

}  // namespace braid
