#include "pipeline/planner/costs/held.h"

#include <algorithm>

#include "ops/panels.h"
#include "weights/codes/rotation.h"
#include "weights/paging/page_layout.h"

namespace braid {
namespace {

bool is_quantized(const PlannedTensor& t, Quantize form) {
  using Kind = PlannedTensor::Kind;
  return t.kind == Kind::kCodes || (t.kind == Kind::kDense && form != Quantize::kNone);
}

// Rotated codes multiply codes, whatever form the others have.
bool is_widened(const PlannedTensor& t, Quantize form) {
  return !t.is_rotated || !keeps_rotated_codes(form);
}

// The tensor, or its codes and scales, each aligned as in a page.
std::int64_t bytes_of(const PlannedTensor& t, const TensorShare& mine, Quantize form,
                      std::int64_t alignment) {
  const bool is_quantized_here = is_quantized(t, form) && t.kind != PlannedTensor::Kind::kCodes;
  return bytes_of(is_quantized_here ? kept_tensors(form, t.dtype) : t.kept, t.columns, mine.rows,
                  mine.runs, alignment);
}

// Bytes of unmerged LoRA factors next to this shard: A, scales, B.
std::int64_t low_rank_bytes(const PlannedTensor& t, const TensorShare& mine, Quantize form) {
  const bool stays_in_codes =
      t.kind == PlannedTensor::Kind::kCodes || (t.is_kept_as_stored() && !is_quantized(t, form));
  const bool is_unmerged = t.adapters == AdapterPlace::kUnmerged ||
                           (t.adapters == AdapterPlace::kUnmergedFromStored && stays_in_codes);
  return is_unmerged ? t.low_rank_rank * (mine.columns + 1 + mine.rows) * t.element_bytes() : 0;
}

// ops::gpu::linear_of_stored() decodes panels; packed forms are widened whole.
std::int64_t panel_bytes(const PlannedTensor& t, const TensorShare& mine) {
  if (t.is_packed) return mine.numbers() * t.element_bytes();
  const auto row = mine.columns * t.element_bytes();
  return ops::rows_per_panel(mine.rows, row) * row;
}

bool is_of_share(const PlannedTensor& t, const PartTensors& part, const PartShare& share) {
  const auto end = share.begin + share.count;
  return (t.block >= share.begin || share.begin == 0) &&
         (t.block < end || end >= part.num_blocks());
}

// The group of blocks that block `block` of the share belongs to. Each list starts a new group.
std::int64_t group_of_block(std::int64_t block, const PartTensors& part, const PartShare& share,
                            int blocks) {
  std::int64_t first = 0, groups = 0;
  for (const auto count : part.lists) {
    const auto begin = std::max(first, share.begin);
    const auto end = std::min(first + count, share.begin + share.count);
    if (block < first + count) return groups + (block - begin) / blocks;
    groups += (std::max<std::int64_t>(0, end - begin) + blocks - 1) / blocks;
    first += count;
  }
  return groups;
}

// -1: not in a page.
std::int64_t group_of(const PlannedTensor& t, const PartTensors& part, const PartShare& share,
                      const PartForm& form) {
  switch (form.offload) {
    case OffloadMode::kNone:
      return -1;
    case OffloadMode::kModel:
      return 0;
    case OffloadMode::kBlock:
      if (part.lists.empty()) return t.leaf;  // the autoencoder
      if (!t.is_in_block) return -1;
      return group_of_block(t.block, part, share, form.blocks);
    case OffloadMode::kLeaf:
    case OffloadMode::kSequential:
      break;
  }
  return t.leaf;
}

}  // namespace

std::int64_t PartPages::paged() const {
  std::int64_t sum = 0;
  for (const auto& page : groups) sum += page.bytes;
  return sum;
}

void PartPages::add(const PartPages& part) {
  outside += part.outside;
  widened = std::max(widened, part.widened);
  decoded = std::max(decoded, part.decoded);
  panel = std::max(panel, part.panel);
  largest_tensor = std::max(largest_tensor, part.largest_tensor);
  groups.insert(groups.end(), part.groups.begin(), part.groups.end());
}

PartPages pages_of(const PartTensors& part, const PartShare& share, const PartForm& form) {
  PartPages pages;
  std::int64_t current = -1, block = -1;
  const bool is_one_page = form.offload == OffloadMode::kModel;
  const bool has_blocks = form.offload == OffloadMode::kBlock && !part.lists.empty();
  for (const auto& t : part.tensors) {
    if (!is_of_share(t, part, share)) continue;
    const auto mine = share_of_tensor(t, share.tp, share.tp_rank);
    const auto in_numbers = mine.numbers() * t.element_bytes();
    pages.largest_tensor = std::max(pages.largest_tensor, in_numbers);
    if (is_quantized(t, form.quantize)) {
      if (is_widened(t, form.quantize)) pages.widened = std::max(pages.widened, in_numbers);
    } else if (t.is_kept_as_stored()) {
      pages.decoded = std::max(pages.decoded, in_numbers);
      pages.panel = std::max(pages.panel, panel_bytes(t, mine));
    }
    pages.outside += low_rank_bytes(t, mine, form.quantize);
    const auto group = group_of(t, part, share, form);
    if (group < 0) {
      pages.outside += bytes_of(t, mine, form.quantize, 1) / t.unpaged_parts;
      continue;
    }
    const auto use = is_one_page ? PageUse::kRepeated : t.use;
    const bool begins = group != current || use != pages.groups.back().use;
    if (begins) pages.groups.push_back({.use = use});
    if (has_blocks && (begins || t.block != block)) ++pages.groups.back().blocks;
    current = group;
    block = t.block;
    pages.groups.back().bytes += bytes_of(t, mine, form.quantize, kTensorAlignment);
  }
  for (auto& page : pages.groups) page.bytes = round_up(page.bytes, kPageAlignment);
  return pages;
}

std::int64_t read_bytes(const PartTensors& part, const PartShare& share, Quantize form) {
  std::int64_t sum = 0;
  for (const auto& t : part.tensors)
    if (t.use == PageUse::kRepeated && is_of_share(t, part, share))
      sum += bytes_of(t, share_of_tensor(t, share.tp, share.tp_rank), form, 1);
  return sum;
}

SlotUse::SlotUse(const PartPages& pages, const Offload& offload)
    : pages_(pages), stay_(resident_groups(pages.groups, offload.resident, offload.residency)) {
  for (std::size_t i = 0; i < stay_.size(); ++i)
    if (!stay_[i]) moving_.push_back(i);
  num_shared_ = std::min(moving_.size(), std::size_t(offload.prefetch) + 1);
}

std::int64_t SlotUse::slot_bytes(SlotsOf where) const {
  std::vector<std::int64_t> slots(num_shared_);
  for (std::size_t k = 0; k < moving_.size(); ++k) {
    auto& slot = slots[k % num_shared_];
    slot = std::max(slot, pages_.groups[moving_[k]].bytes);
  }
  auto sum = resident_bytes();
  if (slots.empty()) return sum;
  const auto largest = *std::max_element(slots.begin(), slots.end());
  for (const auto slot : slots) sum += where == SlotsOf::kDevice ? largest : slot;
  return sum;
}

std::int64_t SlotUse::resident_bytes() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < stay_.size(); ++i)
    if (stay_[i]) sum += pages_.groups[i].bytes;
  return sum;
}

CopiedPages SlotUse::copied(PageUse use, const GroupRange& range) const {
  const auto is_asked = [&](std::size_t i) { return range.has(i) && pages_.groups[i].use == use; };
  std::vector<int> users(num_shared_, 0);
  for (std::size_t k = 0; k < moving_.size(); ++k) users[k % num_shared_] += is_asked(moving_[k]);
  CopiedPages copied;
  for (std::size_t k = 0; k < moving_.size(); ++k) {
    const bool comes_again = use == PageUse::kOnce || users[k % num_shared_] > 1;
    if (!is_asked(moving_[k]) || !comes_again) continue;
    ++copied.count;
    copied.bytes += pages_.groups[moving_[k]].bytes;
  }
  return copied;
}

namespace {

// The answer to a question, computed the first time that it is asked.
template <class Question, class Answer, class Compute>
const Answer& answer_to(const Question& question, std::vector<std::pair<Question, Answer>>& known,
                        const Compute& compute) {
  for (const auto& [asked, answer] : known)
    if (asked == question) return answer;
  return known.emplace_back(question, compute()).second;
}

}  // namespace

PartPages PartFigures::pages(const PartTensors& part, const PartShare& share,
                             const PartForm& form) {
  return answer_to({share, form}, pages_[&part], [&] { return pages_of(part, share, form); });
}

std::int64_t PartFigures::read_bytes(const PartTensors& part, const PartShare& share,
                                     Quantize form) {
  return answer_to({share, form}, read_bytes_[&part],
                   [&] { return braid::read_bytes(part, share, form); });
}

std::optional<std::string> PartFigures::why_not_shared(const PartTensors& part,
                                                       const Shares& ranks) {
  return answer_to(ranks, why_not_shared_[&part],
                   [&] { return braid::why_not_shared(part, ranks); });
}

}  // namespace braid
