// A tiny model and adapter files for it.
#pragma once

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "base/error.h"
#include "files.h"
#include "weights/adapters/adapted_tensors.h"
#include "weights/files/safetensors_writer.h"
#include "weights/weights.h"

namespace braid {

using namespace testing_files;
using Tensors = std::map<std::string, Tensor>;

// A model of four layers. `a` is fused from parts of 4, 4 and 8 rows, the halves of `m` are swapped
// in other spellings, and the inputs of `b` are fused.
class AdaptedModel : public testing::Test {
 protected:
  AdaptedModel() {
    base_ = {{"a.weight", at::randn({16, 6})}, {"a.bias", at::randn({16})},
             {"m.weight", at::randn({8, 6})},  {"m.bias", at::randn({8})},
             {"b.weight", at::randn({6, 16})}, {"n.weight", at::randn({6})}};
    write_file(folder_ / "m.safetensors", write_safetensors(base_));
  }

  static ShardingTable shardings() {
    return {{"a", column_parallel({4, 4, 8})}, {"b", row_parallel({8, 8})}};
  }
  static AdapterNames names() {
    return {.prefixes = {"", "transformer.", "transformer.text_model.", "base_model.model.",
                         "lora_unet_"},
            .tables = {{},
                       {{{"a", {"x.0.to_q", "x.0.to_k", "x.0.to_m"}},
                         {"m", {"x.norm"}, {RowOrder::kSwapHalves}}}},
                       {{{"a", {"x.qk_lora", "x.m_lora"}}}},
                       {{{"n.weight", {"n.scale"}}}}},
            .grown = {.layer = "b", .inputs = 10}};
  }

  AdapterNames names_with_likeness() const {
    auto own = names();
    own.likeness = [this](const AdapterFile&) { return likeness_; };
    return own;
  }

  fs::path write(const Tensors& tensors, const std::string& name = "lora") const {
    const auto path = folder_ / (name + ".safetensors");
    write_file(path, write_safetensors(tensors));
    return path;
  }
  // Writes text into the header, as trainers do.
  fs::path write_with(const std::string& config, const Tensors& tensors,
                      const std::string& key = "__metadata__") const {
    const auto path = write(tensors);
    auto bytes = read_file(path);
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | std::uint8_t(bytes[std::size_t(i)]);
    auto header = bytes.substr(8, length);
    const std::string own = R"("__metadata__":{"format":"pt"})";
    header.replace(header.find(own), own.size(),
                   '"' + key + R"(":{"lora_adapter_metadata":")" + config + "\"}");
    write_file(path, file_of(header, bytes.substr(8 + length)));
    return path;
  }

  std::shared_ptr<TensorSource> source(const std::vector<Adapter>& adapters,
                                       AdapterMode mode = AdapterMode::kAuto) {
    AdaptedPart part{.names = names_with_likeness(),
                     .shardings = shardings(),
                     .others = {"text_"},
                     .warn = [this](const std::string& warning) { warnings_.push_back(warning); }};
    const auto unmerged = std::make_shared<UnmergedAdapters>(std::move(part), at::kCPU);
    {
      const std::lock_guard lock(mutex_);  // ranks load side by side
      unmerged_ = unmerged;
    }
    return adapted_tensors(stored_tensors(Checkpoint::open_file(folder_ / "m.safetensors"), {}),
                           open_adapters(adapters), mode, unmerged);
  }
  Weights load(const std::vector<Adapter>& adapters, const LoadOptions& options = {}) {
    return {source(adapters), options, shardings()};
  }
  Tensors all(const Weights& w) const {
    Tensors tensors;
    for (const auto& [name, tensor] : base_) {
      const auto layer = w / name.substr(0, 1);
      tensors[name] = layer.tensor(name.substr(2), tensor.sizes());
    }
    w.finish();
    return tensors;
  }
  // Expects the model plus `changes`.
  void expect_added(const std::vector<Adapter>& adapters, const Tensors& changes) {
    const auto got = all(load(adapters));
    for (const auto& [name, tensor] : base_) {
      const auto change = changes.find(name);
      const auto want = change == changes.end() ? tensor : tensor + change->second;
      EXPECT_TRUE(at::allclose(got.at(name), want, 1e-6, 1e-6)) << name;
    }
  }
  std::string refusal(const Tensors& tensors) {
    return message_of([&] { (void)all(load({{.file = write(tensors)}})); });
  }

  TemporaryFolder folder_;
  Tensors base_;
  std::vector<std::string> warnings_;
  std::string likeness_;  // what every file looks like
  std::mutex mutex_;
  std::shared_ptr<UnmergedAdapters> unmerged_;  // of the last source
};

// Rows surrounded by rows of zeros.
inline Tensor rows_joined(std::int64_t before, const Tensor& rows, std::int64_t after) {
  return at::constant_pad_nd(rows, {0, 0, before, after});
}

}  // namespace braid
