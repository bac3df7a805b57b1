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
  if (a.shapes.size() != b.shapes.size()) return false;
  if (a.op == Op::kAllToAll || a.op == Op::kShift) return true;  // parts may differ; checked there
  if (a.op == Op::kBroadcast) return true;                       // the root's shape counts
  if (a.op != Op::kAllGather) return a.shapes == b.shapes;
  const auto &of_a = a.shapes.front(), &of_b = b.shapes.front();
  if (of_a.size() != of_b.size()) return false;
  for (std::size_t i = 0; i < of_a.size(); ++i)
    if (int(i) != a.detail && of_a[i] != of_b[i]) return false;
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
  // A length, which is at most `most`.
  std::int64_t next_count(std::int64_t most, const char* what) {
    const auto count = next();
    check(count >= 0 && count <= most, "a note of another rank has ", count, " ", what);
    return count;
  }
  std::string rest() const { return bytes_.substr(at_); }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::string to_string(const Note& note) {
  std::string shapes;
  for (const auto& shape : note.shapes)
    shapes += text_of(shapes.empty() ? "" : ", ", at::IntArrayRef(shape));
  return text_of(op_name(note.op), " of ", note.dtype, " ", shapes.empty() ? "[]" : shapes,
                 note.op == Op::kAllGather   ? text_of(" along dim ", note.detail)
                 : note.op == Op::kBroadcast ? text_of(" from rank ", note.detail)
                                             : "",
                 " (collective ", note.number, ", ", note.site, ")");
}

std::string encode(const Note& note, std::size_t most) {
  std::string bytes;
  append(bytes, int(note.op));
  append(bytes, int(note.dtype));
  append(bytes, note.detail);
  append(bytes, std::int64_t(note.number));
  append(bytes, std::int64_t(note.shapes.size()));
  for (const auto& shape : note.shapes) {
    append(bytes, std::int64_t(shape.size()));
    for (const auto extent : shape) append(bytes, extent);
  }
  check(bytes.size() <= most, "the shapes of a collective's tensors take ", bytes.size(),
        " bytes, and ranks compare at most ", most);
  return bytes + note.site.substr(0, most - bytes.size());
}

Note decode(const std::string& bytes) {
  Reader reader(bytes);
  Note note{};
  note.op = Op(reader.next());
  note.dtype = at::ScalarType(reader.next());
  note.detail = int(reader.next());
  note.number = std::uint64_t(reader.next());
  note.shapes.resize(std::size_t(reader.next_count(64, "tensors")));
  for (auto& shape : note.shapes) {
    shape.resize(std::size_t(reader.next_count(64, "dims")));
    for (auto& extent : shape) extent = reader.next();
  }
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
