// How long does a switch of LoRAs between two requests take? Rank 16 on every dense layer of
// FLUX.1-dev, in bfloat16, beside the weights: a file used for the first time, and one used before.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <algorithm>

#include "base/file.h"
#include "pipeline/files/part_tensors.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid {
namespace {

constexpr std::int64_t kRank = 16;

// The transformer's weights, none of which is read, and two files for them.
class Places {
 public:
  Places() {
    const auto family = named_family("flux1-dev");
    const auto& part = family->part(Part::Role::kDenoiser);
    part.make(Weights::synthetic({.dtype = at::kBFloat16}).surveyed(asked_));
    const auto source = source_of_part(*family, part, nullptr, {.mode = AdapterMode::kUnmerged});
    weights_ = source.unmerged;
    for (const auto& a : asked_)
      if (a.is_matrix()) kept_.push_back(weights_->add(a));
    for (const auto* const name : {"a", "b"}) write(name);
  }

  std::vector<AppliedAdapter> open(const std::string& name) const {
    return open_adapters({{.file = folder_ / (name + ".safetensors"), .scale = 0.8}});
  }
  UnmergedAdapters& weights() { return *weights_; }
  bool are_all_there() const {
    return std::all_of(kept_.begin(), kept_.end(),
                       [](const auto& beside) { return beside->up_NR.defined(); });
  }

 private:
  void write(const std::string& name) const {
    std::map<std::string, at::Tensor> tensors;
    for (const auto& a : asked_) {
      if (!a.is_matrix()) continue;
      const auto module = "diffusion_model." + a.layer;
      const auto options = at::TensorOptions(at::kBFloat16);
      tensors[module + ".lora_A.weight"] = at::ones({kRank, a.shape[1]}, options);
      tensors[module + ".lora_B.weight"] = at::ones({a.shape[0], kRank}, options);
    }
    write_file(folder_ / (name + ".safetensors"), write_safetensors(tensors));
  }

  TemporaryFolder folder_;
  std::vector<SurveyedTensor> asked_;
  std::shared_ptr<UnmergedAdapters> weights_;
  std::vector<std::shared_ptr<const LowRank>> kept_;
};

Places& places() {
  static Places all;
  return all;
}

void to_another_file(benchmark::State& state) {
  auto& all = places();
  const char* const names[] = {"a", "b"};
  std::size_t i = 0;
  for (auto _ : state) all.weights().switch_to(all.open(names[i++ % 2]));
  if (!all.are_all_there()) state.SkipWithError("a layer has no product");
}

void back_to_a_kept_one(benchmark::State& state) {
  auto& all = places();
  const std::vector<AppliedAdapter> sets[] = {all.open("a"), all.open("b")};
  for (const auto& set : sets) all.weights().switch_to(set);
  std::size_t i = 0;
  for (auto _ : state) all.weights().switch_to(sets[i++ % 2]);
  if (!all.are_all_there()) state.SkipWithError("a layer has no product");
}

BENCHMARK(to_another_file)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(back_to_a_kept_one)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace braid
