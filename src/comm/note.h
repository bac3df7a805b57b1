// What a rank is about to do. Ranks compare notes before bytes move, so a mismatch is an error on
// all of them, never a hang or mixed-up bytes.
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
  std::vector<std::vector<std::int64_t>> shapes;  // of the tensors this rank gives
  int detail = 0;                                 // the dim of a gather, the root of a broadcast
  std::uint64_t number = 0;                       // collectives this group has done so far
  std::string site;                               // file:line of the call

  bool operator==(const Note&) const = default;
};

std::string to_string(const Note& note);

// At most `most` flat bytes, for transports between processes: a longer site is cut. Throws Error
// if the rest is longer.
std::string encode(const Note& note, std::size_t most);
Note decode(const std::string& bytes);

// Throws Error naming two ranks and both wishes unless all notes ask for the same: number, op,
// dtype, detail, and shapes that agree except in the dim of a gather.
void check_agreement(const std::vector<Note>& notes);

}  // namespace braid
