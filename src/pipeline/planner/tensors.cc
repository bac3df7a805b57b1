#include "pipeline/planner/tensors.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "pipeline/files/part_tensors.h"

namespace braid {
namespace {

// "double_blocks.7.img_mod.lin" is number 7 of list 0.
struct PlaceInList {
  std::size_t list;
  std::int64_t index;
};
std::optional<PlaceInList> place_in_list(const std::string& layer,
                                         const std::vector<std::string>& lists) {
  for (std::size_t i = 0; i < lists.size(); ++i)
    if (layer.starts_with(lists[i] + "."))
      return PlaceInList{i, std::stoll(layer.substr(lists[i].size() + 1))};
  return {};
}

// Block count of each list; blocks may be asked for in several passes.
std::vector<std::int64_t> numbers_of_blocks(const std::vector<SurveyedTensor>& asked,
                                            const std::vector<std::string>& lists) {
  std::vector<std::int64_t> counts(lists.size());
  for (const auto& a : asked)
    if (const auto place = place_in_list(a.layer, lists))
      counts[place->list] = std::max(counts[place->list], place->index + 1);
  return counts;
}

PlannedTensor::Shared shared_by(const Sharding* sharding, const SurveyedTensor& asked) {
  if (!sharding) return PlannedTensor::Shared::kNot;
  if (sharding->outputs == Outputs::Are::kGathered) return PlannedTensor::Shared::kGathered;
  if (sharding->split == Split::kColumns) return PlannedTensor::Shared::kRows;
  return asked.shape.size() < 2 ? PlannedTensor::Shared::kNot : PlannedTensor::Shared::kColumns;
}

using Kind = PlannedTensor::Kind;

Kind kind_of_numbers(const SurveyedTensor& asked) {
  return asked.is_quantizable() ? Kind::kDense : Kind::kNumbers;
}

Kind kind_of(const SurveyedTensor& asked) {
  const bool has_codes = asked.plan.take == TensorPlan::Take::kCodes || is_rotated(asked.plan);
  return has_codes ? Kind::kCodes : kind_of_numbers(asked);
}

// A weight that an adapter is fused into is kept as numbers; our own codes refuse it.
void add_changes(const SurveyedTensor& asked, const AdapterChanges& changes, AdapterMode mode,
                 PlannedTensor& t) {
  if (changes.is_empty()) return;
  t.adapters = changes.place(mode);
  if (t.adapters != AdapterPlace::kNumbers) {
    t.low_rank_rank = changes.rank();
    return;
  }
  if (t.kind == Kind::kCodes && !t.is_rotated) return;
  if (t.is_rotated) t.kind = kind_of_numbers(asked);
  t.kept = kept_tensors(Quantize::kNone, t.dtype);
  t.is_packed = t.is_rotated = false;
}

// Numbers the pages of layers.
class Leaves {
 public:
  int of(const SurveyedTensor& asked) {
    if (asked.leaf.empty()) return -1;
    if (asked.leaf != current_) ++last_;
    current_ = asked.leaf;
    return last_;
  }

 private:
  std::string current_;
  int last_ = -1;
};

// An autoencoder's convolution over time keeps one slice of its weight, [O I T K K], where it has
// no page.
std::int64_t unpaged_parts(const SurveyedTensor& asked) {
  return !asked.leaf.empty() && asked.shape.size() == 5 ? asked.shape[2] : 1;
}

PartTensors planned(const std::vector<SurveyedTensor>& asked, const Part& described,
                    const PartAdapters& adapters, const ShardingTable& shardings,
                    AdapterMode mode) {
  PartTensors part{.tensors = {}, .lists = numbers_of_blocks(asked, described.lists)};
  Leaves leaves;
  std::int64_t last = -1;
  for (const auto& a : asked) {
    if (a.kind == TensorRequest::Kind::kTable) continue;  // stays in the checkpoint
    const auto place = place_in_list(a.layer, described.lists);
    if (place) {
      const auto before = std::accumulate(
          part.lists.begin(), part.lists.begin() + std::ptrdiff_t(place->list), std::int64_t(0));
      last = before + place->index;
    }
    const auto rows = a.shape.empty() ? 1 : a.shape.front();
    const auto* const sharding = find_sharding(shardings, a.layer);
    part.tensors.push_back(
        {.layer = a.layer,
         .rows = rows,
         .columns = c10::multiply_integers(a.shape) / std::max<std::int64_t>(1, rows),
         .dtype = a.dtype,
         .kind = kind_of(a),
         .kept = kept_tensors(a.plan),
         .is_packed = is_packed(a.plan),
         .is_rotated = is_rotated(a.plan),
         .stored_form = a.plan.form,
         .shared = shared_by(sharding, a),
         .block = place      ? last
                  : last < 0 ? -1
                             : last + 1,
         .leaf = leaves.of(a),
         .unpaged_parts = unpaged_parts(a),
         .is_in_block = a.is_in_block,
         .use = a.use,
         .sharding = sharding ? std::optional(*sharding) : std::nullopt});
    add_changes(a, adapters.changes_of(a), mode, part.tensors.back());
  }
  return part;
}

std::vector<SurveyedTensor> asked_by(const Part& part, const SurveyOptions& o,
                                     const ModelFiles* files) {
  std::vector<SurveyedTensor> asked;
  const LoadOptions load{.dtype = o.dtype,
                         .keep_dense = part.dense_layers(o.keep_dense),
                         .stored_codes = o.stored_codes};
  // A part that lies nowhere yet counts as its configuration says.
  if (!files || !files->has_weights(part.folder)) {
    part.make(Weights::synthetic(load).surveyed(asked));
    return asked;
  }
  part.make(Weights(tensors_of_part(part, *files), load).surveyed(asked));
  return asked;
}

PartTensors survey_part(const Family& family, const Part& part, const SurveyOptions& o,
                        const ModelFiles* files) {
  const auto adapters =
      adapters_of_part(family, part, files ? files->adapters : std::vector<AppliedAdapter>());
  return planned(asked_by(part, o, files), part, adapters,
                 part.sharding ? part.sharding(o.modulation) : ShardingTable(), o.adapters);
}

}  // namespace

std::int64_t PartTensors::num_blocks() const {
  return std::accumulate(lists.begin(), lists.end(), std::int64_t(0));
}

const PartTensors& ModelTensors::of(const Part& part) const {
  const auto it = std::find(parts.begin(), parts.end(), &part);
  check(it != parts.end(), "no survey of ", part.label);
  return tensors[std::size_t(it - parts.begin())];
}

const PartTensors& ModelTensors::of(Part::Role role) const {
  const auto it =
      std::find_if(parts.begin(), parts.end(), [&](const Part* p) { return p->role == role; });
  check(it != parts.end(), "no survey of a part");
  check(std::none_of(it + 1, parts.end(), [&](const Part* p) { return p->role == role; }),
        "there are several parts like ", (*it)->label);
  return of(**it);
}

ModelTensors survey_model(const Family& family, const SurveyOptions& o, const ModelFiles* files) {
  ModelTensors model;
  for (const auto& part : family.description().parts) {
    model.parts.push_back(&part);
    model.tensors.push_back(survey_part(family, part, o, files));
  }
  return model;
}

TensorShare share_of_tensor(const PlannedTensor& t, const Shares& ranks, int rank) {
  using Shared = PlannedTensor::Shared;
  TensorShare share{.rows = t.rows, .columns = t.columns, .runs = {}};
  if (t.shared == Shared::kNot || ranks.size() == 1) return share;
  const bool by_columns = t.shared == Shared::kColumns;
  auto runs = shares_of(*t.sharding, by_columns ? t.columns : t.rows, rank, ranks, t.layer);
  (by_columns ? share.columns : share.rows) = total_count(runs);
  if (by_columns) share.runs = std::move(runs);
  return share;
}

std::optional<std::string> why_not_shared(const PartTensors& part, const Shares& ranks) {
  try {
    for (const auto& tensor : part.tensors) (void)numbers_of(tensor, ranks);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

std::int64_t numbers_of(const PlannedTensor& t, const Shares& ranks, int rank) {
  return share_of_tensor(t, ranks, rank).numbers();
}

std::vector<std::int64_t> block_parameters(const Family& family, const ModelTensors& tensors) {
  std::vector<std::int64_t> sum(std::size_t(family.shape().num_blocks()));
  for (const auto* const part : family.denoisers()) {
    const auto own = block_parameters(tensors.of(*part));
    check(own.size() == sum.size(), part->label, " has ", own.size(), " blocks, not ", sum.size());
    for (std::size_t i = 0; i < own.size(); ++i) sum[i] += own[i];
  }
  return sum;
}

std::vector<std::int64_t> block_parameters(const Family& family) {
  const SurveyOptions options{.dtype = at::kFloat, .modulation = SharedModulation::kYes};
  ModelTensors tensors;
  for (const auto* const part : family.denoisers()) {
    tensors.parts.push_back(part);
    tensors.tensors.push_back(survey_part(family, *part, options, nullptr));
  }
  return block_parameters(family, tensors);
}

std::vector<std::int64_t> block_parameters(const PartTensors& part) {
  std::vector<std::int64_t> sizes(std::size_t(part.num_blocks()));
  for (const auto& t : part.tensors)
    if (t.block >= 0 && t.block < part.num_blocks())
      sizes[std::size_t(t.block)] += numbers_of(t, 1);
  return sizes;
}

}  // namespace braid
