#include "pipeline/planner/tensors.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "models/flux/names.h"
#include "models/vae/model.h"

namespace braid {
namespace {

// Of a part: how its tensors are shared, and the names of its lists of blocks.
struct PartRules {
  ShardingTable shardings = {};
  std::vector<std::string> lists = {}, keep_dense = {};
};

// "double_blocks.7.img_mod.lin": list 0, 7.
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

PlannedTensor::Shared shared_by(const ShardingTable& shardings, const AskedTensor& asked) {
  const auto* const sharding = find_sharding(shardings, asked.layer);
  if (!sharding) return PlannedTensor::Shared::kNot;
  const bool by_columns =
      sharding->split == Split::kRows || sharding->split == Split::kRowsUnsummed;
  if (!by_columns) return PlannedTensor::Shared::kRows;
  return asked.shape.size() < 2 ? PlannedTensor::Shared::kNot : PlannedTensor::Shared::kColumns;
}

PlannedTensor::Kind kind_of(const AskedTensor& asked, const std::vector<std::string>& keep_dense) {
  if (!asked.stored.empty() && asked.stored.front().entry.type == ElementType::kInt8)
    return PlannedTensor::Kind::kCodes;
  const bool stays = std::any_of(keep_dense.begin(), keep_dense.end(), [&](const auto& pattern) {
    return matches(pattern, asked.layer);
  });
  const bool is_dense = asked.kind == AskedTensor::Kind::kMatrix && !stays;
  return is_dense ? PlannedTensor::Kind::kDense : PlannedTensor::Kind::kNumbers;
}

// A dense layer's weight has a page of its own, a convolution both its tensors.
class Leaves {
 public:
  int of(const AskedTensor& asked) {
    const bool begins = asked.kind == AskedTensor::Kind::kMatrix || asked.shape.size() == 4;
    if (begins) {
      convolution_ = asked.shape.size() == 4 ? asked.layer : "";
      return ++last_;
    }
    return !convolution_.empty() && asked.layer == convolution_ ? last_ : -1;
  }

 private:
  std::string convolution_;
  int last_ = -1;
};

PartTensors planned(const std::vector<AskedTensor>& asked, const PartRules& rules) {
  PartTensors part{.tensors = {}, .lists = std::vector<std::int64_t>(rules.lists.size())};
  Leaves leaves;
  std::int64_t last = -1;
  for (const auto& a : asked) {
    if (a.kind == AskedTensor::Kind::kTable) continue;  // it stays in the checkpoint
    const auto place = place_in_list(a.layer, rules.lists);
    if (place) {
      auto& count = part.lists[place->list];
      count = std::max(count, place->index + 1);
      const auto before = std::accumulate(
          part.lists.begin(), part.lists.begin() + std::ptrdiff_t(place->list), std::int64_t(0));
      last = before + place->index;
    }
    const auto rows = a.shape.empty() ? 1 : a.shape.front();
    part.tensors.push_back(
        {.layer = a.layer,
         .rows = rows,
         .columns = c10::multiply_integers(a.shape) / std::max<std::int64_t>(1, rows),
         .element_bytes = std::int64_t(c10::elementSize(a.dtype)),
         .kind = kind_of(a, rules.keep_dense),
         .shared = shared_by(rules.shardings, a),
         .block = place      ? last
                  : last < 0 ? -1
                             : last + 1,
         .leaf = leaves.of(a)});
  }
  return part;
}

template <class Open, class Spell, class Make>
std::vector<AskedTensor> asked_by(at::ScalarType dtype, const ModelFiles* files, const Open& open,
                                  const Spell& spell, const Make& make) {
  std::vector<AskedTensor> asked;
  const LoadOptions load{.dtype = dtype, .survey = &asked};
  if (!files) {
    make(Weights::synthetic(load));
    return asked;
  }
  auto checkpoint = open(*files);
  auto names = spell(checkpoint);
  make(Weights(std::move(checkpoint), std::move(names), load));
  return asked;
}

}  // namespace

std::int64_t PartTensors::num_blocks() const {
  return std::accumulate(lists.begin(), lists.end(), std::int64_t(0));
}

ModelTensors survey_model(const ModelSizes& m, const SurveyOptions& o, const ModelFiles* files) {
  const auto flux = asked_by(
      o.dtype, files, [](const ModelFiles& f) { return f.open_transformer(); }, flux_names,
      [&](const Weights& w) { (void)Flux(m.flux, w); });
  const auto t5 = asked_by(
      o.dtype, files, [](const ModelFiles& f) { return f.open_text_encoder("text_encoder_2"); },
      [](const Checkpoint&) { return t5_names(); }, [&](const Weights& w) { (void)T5(m.t5, w); });
  const auto clip = asked_by(
      o.dtype, files, [](const ModelFiles& f) { return f.open_text_encoder("text_encoder"); },
      clip_names, [&](const Weights& w) { (void)Clip(m.clip, w); });
  const auto vae = asked_by(
      o.dtype, files, [](const ModelFiles& f) { return f.open_vae(); }, vae_names,
      [&](const Weights& w) { (void)Vae(m.vae, w, Vae::Parts::kDecoder); });
  return {
      .transformer = planned(flux, {.shardings = flux_sharding(m.flux, 1, o.modulation),
                                    .lists = {"double_blocks", "single_blocks"},
                                    .keep_dense = o.keep_dense}),
      .t5 = planned(t5, {.shardings = t5_sharding(m.t5, 1), .lists = {"encoder.block"}}),
      .clip = planned(clip, {.shardings = clip_sharding(m.clip, 1), .lists = {"encoder.layers"}}),
      .vae = planned(vae, {})};
}

}  // namespace braid
