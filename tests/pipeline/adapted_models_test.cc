// LoRAs in whole models: however weights are kept, shared and written, results equal merged
// weights.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "comm/thread.h"
#include "message_of.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/engine/engine.h"
#include "pipeline/files/found_files.h"
#include "pipeline/files/part_tensors.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/proofs/verify.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::adapted_models_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kParity = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity";
const fs::path kModel = kParity / "basic/model";

fs::path file(const std::string& name) {
  return kParity / "adapters/flux" / (name + ".safetensors");
}

double largest_error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

Request request() {
  return {.prompts = {"a star"}, .width = 64, .height = 48, .steps = 1, .max_sequence_length = 13};
}

Recording drawn(const Engine& engine, const Request& request) {
  return engine.generate(request, {}, {.record = RecordTensors::kYes}).facts.recording;
}

Recording run(const PipelineOptions& options) { return drawn(Engine(options, {}), request()); }

void expect_same(const Recording& got, const Recording& want) {
  for (const auto* name : {"pooled_prompt_embeds", "velocity_first", "latents_final"})
    EXPECT_TRUE(at::equal(got.at(name), want.at(name))) << name;
}

// The model is stored in bfloat16, so a converted one is rounded as a loaded one is.
class AdaptedModels : public testing::Test {
 protected:
  PipelineOptions options(std::vector<Adapter> adapters) const {
    return {.model = kModel, .adapters = std::move(adapters), .dtype = Dtype::kBfloat16};
  }
  // A LoRA for CLIP's first layer, in sd-scripts' spelling.
  fs::path text_adapter() const {
    const auto path = folder_ / "text.safetensors";
    const std::string module = "lora_te1_text_model_encoder_layers_0_self_attn_k_proj";
    write_file(path, write_safetensors({{module + ".lora_down.weight", at::randn({2, 32})},
                                        {module + ".lora_up.weight", at::randn({32, 2})},
                                        {module + ".alpha", at::full({}, 1.0)}}));
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(AdaptedModels, AreWrittenByConversion) {
  const std::vector<Adapter> adapters = {
      {.file = file("kohya"), .scale = 0.5}, {.file = file("peft-dora")}, {.file = text_adapter()}};
  const auto out = folder_ / "merged";
  convert({.model = kModel, .adapters = adapters, .out = out});
  const auto merged = run({.model = out, .dtype = Dtype::kBfloat16});
  expect_same(run(options(adapters)), merged);
  const auto plain = run(options({}));
  for (const auto* name : {"pooled_prompt_embeds", "velocity_first"})
    EXPECT_GT(largest_error(merged.at(name), plain.at(name)), 0.01) << name;
  EXPECT_THAT(message_of([&] {
                convert({.model = kModel,
                         .adapters = {{.file = kParity / "adapters/zimage/comfyui.safetensors"}},
                         .out = folder_ / "none"});
              }),
              HasSubstr("is for a weight of [30, 16]"));
  EXPECT_FALSE(fs::exists(folder_ / "none"));
  EXPECT_FALSE(fs::exists(folder_ / "none.partial"));
}

class SlowAdaptedModels : public AdaptedModels {};

TEST_F(SlowAdaptedModels, AreTheSameHoweverWeightsAreKept) {
  for (const auto quantize : {Quantize::kNone, Quantize::kInt8}) {
    auto resident = options({{.file = file("kohya"), .scale = 0.5}, {.file = file("lokr")}});
    resident.memory.quantize = quantize;
    const auto want = run(resident);
    const auto out = folder_ / ("merged" + std::to_string(int(quantize)));
    convert(
        {.model = kModel, .adapters = resident.adapters, .out = out, .memory = resident.memory});
    expect_same(run({.model = out, .dtype = Dtype::kBfloat16}), want);
    for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
      auto paged = resident;
      paged.memory.offload.transformer = mode;
      expect_same(run(paged), want);
    }
    auto on_disk = resident;
    on_disk.memory.offload = {.transformer = OffloadMode::kBlock, .folder = folder_ / "pages"};
    expect_same(run(on_disk), want);
    expect_same(run(on_disk), want);
    on_disk.adapters[0].scale = 0.25;  // must not reuse pages of the other scale
    auto other = resident;
    other.adapters[0].scale = 0.25;
    expect_same(run(on_disk), run(other));
  }
}

TEST_F(SlowAdaptedModels, AreTheSameInEveryLayout) {
  for (const auto mode : {AdapterMode::kFused, AdapterMode::kUnmerged}) {
    auto alone = options({{.file = file("comfyui"), .scale = 0.5}});
    alone.dtype = Dtype::kFloat32;
    alone.adapter_mode = mode;
    auto guided = request();
    guided.negative_prompt = "a circle";
    guided.true_cfg = 2;
    const auto velocity = [&](const PipelineOptions& options) {
      return drawn(Engine(options, {}), guided).at("velocity_first");
    };
    const auto want = velocity(alone);
    for (const auto& layout : {Layout{.tp = 2}, Layout{.ring = 2}, Layout{.ulysses = 2},
                               Layout{.pp = 2}, Layout{.cfg = 2}}) {
      auto shared = alone;
      shared.layout = layout;
      EXPECT_LT(largest_error(velocity(shared), want), 2e-5);
    }
    alone.layout.tp = 2;
    const ProbeOptions probe{.width = 64, .height = 48, .max_sequence_length = 21};
    EXPECT_EQ(verify(deploy(alone), {.probe = probe}).first_divergent(), nullptr);
  }
}

TEST_F(AdaptedModels, StandBesideBlocksOfAFile) {
  PipelineOptions beside{.model = kParity / "blocks/flux.gguf",
                         .components = kModel,
                         .adapters = {{.file = file("kohya"), .scale = 0.5}},
                         .dtype = Dtype::kFloat32};
  auto fused = beside;
  fused.adapter_mode = AdapterMode::kFused;
  const auto want = run(fused).at("velocity_first");
  for (const int tp : {1, 2}) {
    beside.layout.tp = tp;
    const auto got = run(beside).at("velocity_first");
    EXPECT_LT(largest_error(got, want), 2e-5);
    EXPECT_FALSE(at::equal(got, want)) << "they were fused";
  }
}

// The bytes of all products beside the transformer's weights, as the ranks of a group load them.
std::vector<std::int64_t> bytes_beside(const PipelineOptions& options, int ranks) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks));
  run_ranks({.size = ranks}, [&](const Group& group) {
    const auto files = find_model(options).files;
    const auto family = open_family(files);
    const auto& part = family->part(Part::Role::kDenoiser);
    LoadOptions load{.dtype = at::kBFloat16, .stored_codes = StoredCodes::kKept};
    load.quantize = options.memory.quantize;
    load.tensor_parallel = group;
    std::vector<SurveyedTensor> asked;
    part.make(Weights(tensors_of_part(part, files), {}).surveyed(asked));
    const auto source = source_of_part(*family, part, &files,
                                       {.adapters = files.adapters, .mode = options.adapter_mode});
    const Weights w(source.tensors, load, part.sharding(SharedModulation::kYes));
    std::vector<Matrix> matrices;
    for (const auto& a : asked)
      if (a.is_matrix())
        matrices.push_back((w / a.layer).matrix(a.name, a.shape));
      else
        (void)(w / a.layer).tensor(a.name, a.shape);
    w.finish();
    for (const auto& matrix : matrices)
      if (matrix.has_low_rank())
        for (const auto& tensor :
             {matrix.low_rank->down_RC, matrix.low_rank->scales_R, matrix.low_rank->up_NR})
          bytes[std::size_t(group.rank())] += std::int64_t(tensor.nbytes());
  });
  return bytes;
}

TEST_F(SlowAdaptedModels, ArePlannedAsTheyStandBeside) {
  PipelineOptions options{.model = kModel, .dtype = Dtype::kBfloat16};
  const auto expect_planned = [&](const std::string& adapter, AdapterMode mode) {
    options.adapter_mode = mode;
    for (const int tp : {1, 2}) {
      options.adapters = {{.file = file(adapter)}};
      const auto beside = bytes_beside(options, tp);
      for (int rank = 0; rank < tp; ++rank) {
        const auto planned = [&] {
          return predict_bytes(job_of(deploy(options), {}), {.tp = tp}, rank,
                               whole_transformer(open_family(find_model(options).files)->shape()))
              .transformer;
        };
        options.adapters = {{.file = file(adapter)}};
        const auto with = planned();
        options.adapters.clear();
        EXPECT_EQ(with - planned(), beside[std::size_t(rank)])
            << adapter << ", rank " << rank << " of " << tp;
      }
    }
    options.adapters = {{.file = file(adapter)}};
    return bytes_beside(options, 1).front();
  };
  for (const auto* const adapter : {"kohya", "peft", "comfyui"})
    EXPECT_GT(expect_planned(adapter, AdapterMode::kUnmerged), 0);
  EXPECT_EQ(expect_planned("kohya", AdapterMode::kAuto), 0) << "fused";
  options.components = kModel;
  options.model = kParity / "blocks/flux.gguf";
  EXPECT_GT(expect_planned("peft", AdapterMode::kAuto), 0) << "blocks stay as they are";
  options.memory.quantize = Quantize::kInt8;
  EXPECT_EQ(expect_planned("peft", AdapterMode::kAuto), 0);
}

// A weight in blocks that is changed itself is numbers.
TEST_F(AdaptedModels, ArePlannedAsTheyAreFusedIntoBlocks) {
  PipelineOptions options{
      .model = kParity / "blocks/flux.gguf", .components = kModel, .dtype = Dtype::kBfloat16};
  const auto planned = [&] {
    return predict_bytes(job_of(deploy(options), {}), {}, 0,
                         whole_transformer(open_family(find_model(options).files)->shape()))
        .transformer;
  };
  const auto in_blocks = planned();
  options.adapters = {{.file = file("kohya")}};
  options.adapter_mode = AdapterMode::kFused;
  EXPECT_GT(planned(), in_blocks);
}

// A hook of loading may be gone by the time that a request brings its adapters.
TEST_F(AdaptedModels, ThatRequestsBringAreWarnedOfByTheirOwnHooks) {
  const auto path = folder_ / "more.safetensors";
  const std::string known = "lora_te1_text_model_encoder_layers_0_self_attn_k_proj",
                    unknown = "lora_te1_text_model_encoder_layers_99_self_attn_k_proj";
  std::map<std::string, Tensor> tensors;
  for (const auto& module : {known, unknown}) {
    tensors[module + ".lora_down.weight"] = at::randn({2, 32});
    tensors[module + ".lora_up.weight"] = at::randn({32, 2});
  }
  write_file(path, write_safetensors(tensors));
  auto beside = options({});
  beside.adapter_mode = AdapterMode::kUnmerged;
  int told_while_loaded = 0;
  std::vector<std::string> told;
  const Engine engine(beside, {.warning = [&](const std::string&) { ++told_while_loaded; }});
  auto with = request();
  with.adapters = {{.file = path}};
  for (const auto* const time : {"first", "again"}) {
    told.clear();
    (void)engine.generate(with, {.warning = [&](const std::string& one) { told.push_back(one); }});
    EXPECT_EQ(told_while_loaded, 0);
    EXPECT_THAT(told, testing::Contains(HasSubstr("2 tensors that the model has no use for")))
        << time;
  }
}

TEST_F(AdaptedModels, StandBesideStoredCodes) {
  const auto out = folder_ / "codes";
  convert({.model = kModel, .out = out, .memory = {.quantize = Quantize::kInt8}});
  auto with = PipelineOptions{.model = out, .dtype = Dtype::kFloat32};
  const auto plain = run(with);
  with.adapters = {{.file = file("comfyui"), .scale = 0.25}};
  const auto beside = run(with);
  auto numbers =
      PipelineOptions{.model = kModel, .adapters = with.adapters, .dtype = Dtype::kFloat32};
  const auto fused = run(numbers);
  EXPECT_GT(largest_error(plain.at("velocity_first"), fused.at("velocity_first")), 0.2);
  EXPECT_LT(largest_error(beside.at("velocity_first"), fused.at("velocity_first")), 0.05);
  with.layout.tp = 2;
  EXPECT_LT(largest_error(run(with).at("velocity_first"), beside.at("velocity_first")), 2e-5);
  with.adapter_mode = AdapterMode::kFused;
  EXPECT_THAT(message_of([&] { run(with); }), HasSubstr("stored in 8 bits"));
}

// Nothing is left of the previous request's adapters.
TEST_F(SlowAdaptedModels, AreSwitchedBetweenRequests) {
  for (const int ranks : {1, 2}) {
    auto beside = options({{.file = file("fal")}});
    beside.adapter_mode = AdapterMode::kUnmerged;
    beside.layout.tp = ranks;
    const Engine engine(beside, {});
    const auto with = [&](std::optional<std::vector<Adapter>> adapters) {
      auto r = request();
      r.adapters = std::move(adapters);
      return drawn(engine, r);
    };
    const auto fresh = [&](std::vector<Adapter> adapters) {
      auto o = beside;
      o.adapters = std::move(adapters);
      return run(o);
    };
    const std::vector<Adapter> kohya = {{.file = file("kohya"), .scale = -0.5},
                                        {.file = text_adapter()}};
    const auto own = fresh(beside.adapters), other = fresh(kohya), none = fresh({});
    expect_same(with({}), own);
    expect_same(with(kohya), other);
    expect_same(with(std::vector<Adapter>()), none);
    expect_same(with({}), own);
    EXPECT_FALSE(at::equal(own.at("velocity_first"), other.at("velocity_first")));
    // adapters that do not fit are refused, and change nothing
    for (const auto* const wrong : {"peft-dora", "control", "lokr"})
      EXPECT_THROW(with(std::vector<Adapter>{{.file = file(wrong)}}), InputError);
    EXPECT_THROW(with(std::vector<Adapter>{{.file = folder_ / "none"}}), InputError);
    expect_same(with({}), own);
  }
}

TEST_F(AdaptedModels, FusedAreNotSwitched) {
  const Engine engine(options({}), {});
  auto r = request();
  r.adapters = std::vector<Adapter>{{.file = file("fal")}};
  EXPECT_THAT(message_of([&] { drawn(engine, r); }), HasSubstr("stay beside the weights"));
}

}  // namespace braid::adapted_models_test
