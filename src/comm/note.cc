#include "comm/note.h"

#include <ATen/core/Formatting.h>

#include <cstring>

#include "base/error.h"

namespace braid {
namespace {

const char* op_name(Op op) {
  switch (op) {
    case Op::kAllReduce:
      return "all_reduce";
    case Op::kAllGather:
      return "all_gather";
    case Op::kAllToAll:
      return "all_to_all";
    case Op::kBroadcast:
      return "broadcast";
    case Op::kShift:
      return "ring_shift";
    case Op::kBarrier:
      return "barrier";
  }
  return "?";
}

// Whether two shapes may occur together in one call of `op`.
bool shapes_agree(const Note& a, const Note& b) {
  if (a.op == Op::kAllToAll || a.op == Op::kShift) return true;  // parts may differ; checked there
  if (a.op == Op::kBroadcast) return true;                       // the root's shape counts
  if (a.op != Op::kAllGather) return a.shape == b.shape;
  if (a.shape.size() != b.shape.size()) return false;
  for (std::size_t i = 0; i < a.shape.size(); ++i)
    if (int(i) != a.detail && a.shape[i] != b.shape[i]) return false;
  return true;
}

void append(std::string& bytes, std::int64_t value) {
  char raw[8];
  std::memcpy(raw, &value, 8);
  bytes.append(raw, 8);
}

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  std::int64_t next() {
    check(at_ + 8 <= bytes_.size(), "a note of another rank is cut short");
    std::int64_t value;
    std::memcpy(&value, bytes_.data() + at_, 8);
    at_ += 8;
    return value;
  }
  std::string rest() const { return bytes_.substr(at_); }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::string to_string(const Note& note) {
  return text_of(op_name(note.op), " of ", note.dtype, " ", at::IntArrayRef(note.shape),
                 note.op == Op::kAllGather   ? text_of(" along dim ", note.detail)
                 : note.op == Op::kBroadcast ? text_of(" from rank ", note.detail)
                                             : "",
                 " (collective ", note.number, ", ", note.site, ")");
}

std::string encode(const Note& note) {
  std::string bytes;
  append(bytes, int(note.op));
  append(bytes, int(note.dtype));
  append(bytes, note.detail);
  append(bytes, std::int64_t(note.number));
  append(bytes, std::int64_t(note.shape.size()));
  for (const auto extent : note.shape) append(bytes, extent);
  return bytes + note.site;
}

Note decode(const std::string& bytes) {
  Reader reader(bytes);
  Note note{};
  note.op = Op(reader.next());
  note.dtype = at::ScalarType(reader.next());
  note.detail = int(reader.next());
  note.number = std::uint64_t(reader.next());
  const auto dims = reader.next();
  check(dims >= 0 && dims <= 64, "a note of another rank has ", dims, " dims");
  for (std::int64_t i = 0; i < dims; ++i) note.shape.push_back(reader.next());
  note.site = reader.rest();
  return note;
}

void check_agreement(const std::vector<Note>& notes) {
  const auto& a = notes.front();
  for (std::size_t rank = 1; rank < notes.size(); ++rank) {
    const auto& b = notes[rank];
    const bool agree = a.op == b.op && a.dtype == b.dtype && a.detail == b.detail &&
                       a.number == b.number && shapes_agree(a, b);
    check(agree, "the ranks disagree: rank 0 calls ", to_string(a), ", rank ", rank, " calls ",
          to_string(b));
  }
}

}  // namespace braid
