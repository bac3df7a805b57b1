// Where a part's weights live for a given offload mode: what Pages computes, before there are any.
#pragma once

#include <map>

#include "pipeline/planner/tensors.h"

namespace braid {

// Whose share: rank `tp_rank` of the ranks `tp`, blocks [begin, begin + count) with what precedes
// the first block and follows the last; all by default.
struct PartShare {
  Shares tp = 1;
  int tp_rank = 0;
  std::int64_t begin = 0, count = std::int64_t(1) << 40;

  bool operator==(const PartShare&) const = default;
};

// A part divided by its offload mode.
struct PartPages {
  std::int64_t outside = 0;         // bytes that are always on the device
  std::vector<GroupCost> groups;    // pages, in loading order
  std::int64_t widened = 0;         // largest quantized matrix as numbers, while it multiplies
  std::int64_t decoded = 0;         // largest other matrix in a file's codes, as numbers
  std::int64_t panel = 0;           // largest panel of such a matrix, as a GPU decodes it
  std::int64_t largest_tensor = 0;  // as numbers, while it is read

  std::int64_t paged() const;
  // Another part, whose pages use the same slots.
  void add(const PartPages& part);
};

// Some of a part's pages.
struct GroupRange {
  std::size_t first = 0, count = std::size_t(-1);

  bool has(std::size_t group) const { return group >= first && group - first < count; }
};

struct PartForm {
  Quantize quantize = Quantize::kNone;
  OffloadMode offload = OffloadMode::kNone;
  int blocks = 1;  // per group, with kBlock

  bool operator==(const PartForm&) const = default;
};

PartPages pages_of(const PartTensors& part, const PartShare& share, const PartForm& form);

// Bytes of weights that an evaluation reads, in the form that they are kept in.
std::int64_t read_bytes(const PartTensors& part, const PartShare& share, Quantize form);

enum class SlotsOf { kDevice, kHost };

struct CopiedPages {
  std::int64_t count = 0, bytes = 0;
};

// How a part's pages use their slots: some have one to themselves, the others take turns.
class SlotUse {
 public:
  // Looks at the offload's `resident`, `residency` and `prefetch`. The pages outlive it.
  SlotUse(const PartPages& pages, const Offload& offload);

  // Bytes of the slots. A GPU slot takes all its bytes. A host slot takes those a page has touched,
  // and is no larger than the largest page it receives.
  std::int64_t slot_bytes(SlotsOf where) const;
  // Bytes of the pages with a slot to themselves.
  std::int64_t resident_bytes() const;
  // The others: copied each time the part runs, or once before. A page whose slot no other page
  // that is used as often comes to stays there after the first time.
  CopiedPages copied(PageUse use, const GroupRange& range = {}) const;

 private:
  const PartPages& pages_;
  std::vector<bool> stay_;           // by page: has a slot to itself
  std::vector<std::size_t> moving_;  // the others, in loading order
  std::size_t num_shared_;           // slots that these take in turn
};

// Figures of parts that a search over layouts or ways to keep weights asks for again and again,
// each computed once. The parts outlive it and do not change. One thread uses it at a time.
class PartFigures {
 public:
  PartPages pages(const PartTensors& part, const PartShare& share, const PartForm& form);
  std::int64_t read_bytes(const PartTensors& part, const PartShare& share, Quantize form);
  std::optional<std::string> why_not_shared(const PartTensors& part, const Shares& ranks);

 private:
  template <class Question, class Answer>
  using Answers = std::map<const PartTensors*, std::vector<std::pair<Question, Answer>>>;
  Answers<std::pair<PartShare, PartForm>, PartPages> pages_;
  Answers<std::pair<PartShare, Quantize>, std::int64_t> read_bytes_;
  Answers<Shares, std::optional<std::string>> why_not_shared_;
};

}  // namespace braid
